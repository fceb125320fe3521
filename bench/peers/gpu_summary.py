#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The summary of a results folder of tools/gpu_check.sh, as text.

gpu_summary.py RESULTS
"""
import json
import pathlib
import sys

MARGINAL = ("_p5_us", "_p95_us")


def read_json(path):
    """The file's objects, or none where it is not whole."""
    text = path.read_text()
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    objects = []
    for line in text.splitlines():
        try:
            objects.append(json.loads(line))
        except ValueError:
            break  # a peer that was ended in the middle of a line
    return objects


def bench_times(results):
    """(name, batch) -> us, for each time that a bench reports of a step."""
    for path in sorted(results.glob("bench-*.json")):
        for run in read_json(path):
            for row in run.get("rows", []):
                for key, value in row.items():
                    if (key.endswith("_us") and not key.endswith(MARGINAL)
                            and isinstance(value, (int, float))):
                        part = path.stem.removeprefix("bench-").split("-")
                        part = [p for p in part if p != str(row["batch"])]
                        name = f"{' '.join(part)}: {key[:-3]}"
                        yield name, row["batch"], value


def peer_times(results):
    for path in sorted(results.glob("peer-*.jsonl")):
        for run in read_json(path):
            name = run["approach"]
            yield f"{name}: synced", run["batch"], run["step_us"]
            yield f"{name}: queued", run["batch"], run["queued_us"]


def table(title, times):
    cells, names = {}, []
    for name, batch, us in times:
        if name not in names:
            names.append(name)
        cells[name, batch] = us
    if not cells:
        return f"\n{title}: none\n"
    batches = sorted({batch for _, batch in cells})
    text = f"\n{title}, us per step\n{'batch':44}"
    text += "".join(f"{batch:>11}" for batch in batches) + "\n"
    for name in names:
        text += f"{name:44}"
        for batch in batches:
            us = cells.get((name, batch))
            text += f"{'-' if us is None else format(us, '.2f'):>11}"
        text += "\n"
    return text


def probe_table(results):
    path = results / "probe.json"
    runs = read_json(path) if path.exists() else []
    if not runs or "rows" not in runs[0]:
        return "\nprobe: none\n"
    text = f"\nprobe: {runs[0]['gpu']}, {runs[0]['matmul_library']}\n"
    for row in runs[0]["rows"]:
        text += (f"{row['name']:56}{row['value']:>12.4g} {row['unit']}"
                 f"{'  (' + row['doubt'] + ')' if row['doubt'] else ''}\n")
    return text


def parts_table(results):
    text = "\nparts\n"
    for line in (results / "parts.tsv").read_text().splitlines():
        name, status, seconds, why = line.split("\t", 3)
        word = {"0": "ok", "skipped": "skipped"}.get(status, f"FAILED {status}")
        text += f"{name:28}{word:12}{seconds:>5} s  {why}\n"
    return text


def main(folder):
    results = pathlib.Path(folder)
    differences = [(run["loss_difference"], run["approach"], run["batch"])
                   for path in results.glob("peer-*.jsonl")
                   for run in read_json(path)]
    print(probe_table(results), end="")
    print(table("onestep", bench_times(results)), end="")
    print(table("peers", peer_times(results)), end="")
    if differences:
        worst, name, batch = max(differences)
        print(f"peers' losses against fp64: at most {worst:.1e} off "
              f"({name}, batch {batch})")
    print(parts_table(results), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
