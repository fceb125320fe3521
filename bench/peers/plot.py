# SPDX-License-Identifier: Apache-2.0
"""Draws compare's table: seconds per epoch by batch, both logarithmic.

  plot.py compare.json compare.svg    draws it once more
"""
import json
import pathlib
import sys

import matplotlib
from matplotlib import pyplot, ticker

# Read on white and on black. The lines of onestep are warm and thick.
COLORS = {
    "numpy": "#8c8c8c", "torch-eager": "#4c8bf5", "torch-compile": "#3474e0",
    "jax-jit": "#3aa76d", "jax-scan": "#1c8a4e", "keras": "#a06cd5",
    "keras-jax": "#8a55cc", "unfused": "#e0a030", "chain": "#e67e22",
    "single-dense": "#e04f3a", "single-sparse": "#d6256b",
}
PEERS = ("numpy", "torch-", "jax-", "keras")
# Stands for the color of text in what matplotlib writes.
INK = "#123456"
STYLE = """<style>
svg { color: #24292f }
@media (prefers-color-scheme: dark) { svg { color: #e6edf3 } }
</style>
"""


def spaced(ys, gap):
    """The heights of labels near ys, in order, none closer than gap."""
    order = sorted(range(len(ys)), key=ys.__getitem__)
    placed = list(ys)
    # Overlapping labels become a group around the mean of what they label.
    groups = []
    for i in order:
        groups.append(([i], ys[i]))
        while len(groups) > 1:
            (low, low_mid), (high, high_mid) = groups[-2:]
            if high_mid - low_mid >= gap * (len(low) + len(high)) / 2:
                break
            members = low + high
            groups[-2:] = [(members, sum(ys[m] for m in members)
                            / len(members))]
    for members, mid in groups:
        for k, i in enumerate(members):
            placed[i] = mid + gap * (k - (len(members) - 1) / 2)
    return placed


def draw(report, path):
    matplotlib.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "onestep", "font.size": 10,
        "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK,
        "xtick.color": INK, "ytick.color": INK})
    figure, axes = pyplot.subplots(figsize=(8, 5.2))
    lines = {}
    for row in report["results"]:
        lines.setdefault(row["approach"], []).append(row)

    ends = []
    for name, rows in lines.items():
        rows = sorted(rows, key=lambda row: row["batch"])
        peer = name.startswith(PEERS)
        batches = [row["batch"] for row in rows]
        medians = [row["median"] for row in rows]
        axes.fill_between(batches, [row["min"] for row in rows],
                          [row["max"] for row in rows], linewidth=0,
                          color=COLORS[name], alpha=0.15)
        axes.plot(batches, medians, color=COLORS[name], marker="o",
                  markersize=3 if peer else 4, linewidth=1.2 if peer else 2.2)
        ends.append((batches[-1], medians[-1], rows[0]["label"], COLORS[name],
                     peer))

    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(report["batches"], [f"{b:,}" for b in report["batches"]])
    axes.minorticks_off()
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5), numticks=20))
    axes.yaxis.set_major_formatter(
        ticker.FuncFormatter(lambda y, _: f"{y:g}"))
    axes.set_xlabel("Batch, rows")
    axes.set_title(f"Seconds per epoch of {report['rows']:,} rows, "
                   f"{report['model']}, {report['threads']} threads",
                   loc="left", fontsize=11)
    axes.grid(True, color=INK, alpha=0.12, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.subplots_adjust(right=0.78)

    # Labels at the ends of the lines, in the units of the screen.
    figure.canvas.draw()
    points = [axes.transData.transform((x, y)) for x, y, *_ in ends]
    right = max(x for x, _ in points) + 12
    heights = spaced([y for _, y in points], gap=17)
    back = axes.transData.inverted()
    for (x, y, label, color, peer), height in zip(ends, heights):
        axes.annotate(label, (x, y), back.transform((right, height)),
                      color=color, va="center", annotation_clip=False,
                      fontweight="normal" if peer else "bold",
                      arrowprops={"arrowstyle": "-", "color": color,
                                  "linewidth": 0.6, "alpha": 0.6,
                                  "shrinkA": 1, "shrinkB": 3})
    # No date: the same figures give the same file.
    figure.savefig(path, transparent=True, metadata={"Date": None})
    pyplot.close(figure)

    text = pathlib.Path(path).read_text().replace(INK, "currentColor")
    head, defs, rest = text.partition(" <defs>")
    pathlib.Path(path).write_text(head + STYLE + defs + rest)


if __name__ == "__main__":
    draw(json.loads(pathlib.Path(sys.argv[1]).read_text()), sys.argv[2])
