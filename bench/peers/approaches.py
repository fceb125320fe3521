# SPDX-License-Identifier: Apache-2.0
"""What is compared, how each is run, and what they are run on."""
import dataclasses
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import textwrap

PEERS = pathlib.Path(__file__).resolve().parent
ROOT = PEERS.parent.parent
VENV = PEERS / ".venv"
TRAINER = ROOT / "build" / "release" / "trainer" / "trainer"


class Failed(Exception):
    """One line that says why a run gave no result."""


@dataclasses.dataclass(frozen=True)
class Approach:
    name: str
    script: str  # "": the trainer
    flags: tuple

    @property
    def is_peer(self):
        return bool(self.script)

    @property
    def label(self):
        name = self.name if self.is_peer else self.name.replace("-", " ")
        return name if self.is_peer else f"onestep {name}"

    def train(self, trainer, flags):
        """The object that a run of it prints, its epochs at least."""
        if self.is_peer:
            command = [VENV / "bin" / "python", PEERS / self.script]
        else:
            command = [trainer, "train", "--json"]
        return run_json([*command, *self.flags, *flags])


ALL = [
    Approach("numpy", "numpy_mlp.py", ()),
    Approach("torch-eager", "torch_mlp.py", ("--mode", "eager")),
    Approach("torch-compile", "torch_mlp.py", ("--mode", "compile")),
    Approach("jax-jit", "jax_mlp.py", ("--mode", "jit")),
    Approach("jax-scan", "jax_mlp.py", ("--mode", "scan")),
    Approach("keras", "keras_mlp.py", ("--mode", "tensorflow")),
    Approach("keras-jax", "keras_mlp.py", ("--mode", "jax")),
    Approach("unfused", "", ("--fuse", "off")),
    Approach("chain", "", ("--fuse", "on", "--dispatch", "ops",
                           "--input", "dense")),
    Approach("single-dense", "", ("--fuse", "on", "--dispatch", "single",
                                  "--input", "dense")),
    Approach("single-sparse", "", ("--fuse", "on", "--dispatch", "single",
                                   "--input", "sparse")),
]


def named(text):
    """The approaches of a flag's value: names joined by commas."""
    by_name = {approach.name: approach for approach in ALL}
    return [by_name[name] for name in text.split(",")]


def enter_venv():
    """Goes on in the virtual environment, where the plot's library is."""
    python = VENV / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"{python}: not there; run bench/peers/install.sh")
    if not os.path.samefile(sys.prefix, VENV):
        os.execv(python, [str(python), *sys.argv])


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def run_text(command):
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise Failed(str(error)) from None
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines()]
        last = next((line for line in reversed(lines) if line), "no message")
        raise Failed(f"exit code {done.returncode}: {last}")
    return done.stdout


def run_json(command):
    return json.loads(run_text(command))


def commit():
    def git(*words):
        return subprocess.run(["git", "-C", str(ROOT), *words], check=True,
                              capture_output=True, text=True).stdout.strip()

    try:
        changes = git("status", "--porcelain")
        return git("rev-parse", "--short", "HEAD") + (
            " with changes" if changes else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def peak_gflops(trainer, threads):
    """What FMAs alone reach on this many threads, measured now."""
    return run_json([trainer, "bench", "--json", "--batch", "32", "--samples",
                     "10", "--processes", "1", "--threads",
                     threads])["peak_gflops"]


def write_random_rows(folder, rows, features, classes, seed):
    """IDX files of random pixels and labels, for training and for test."""
    draw = random.Random(seed)
    for name, count in (("train", rows), ("t10k", 10)):
        pixels = draw.randbytes(count * features)
        labels = bytes(draw.randrange(classes) for _ in range(count))
        pathlib.Path(folder, f"{name}-images-idx3-ubyte").write_bytes(
            struct.pack(">4i", 0x803, count, 2, features // 2) + pixels)
        pathlib.Path(folder, f"{name}-labels-idx1-ubyte").write_bytes(
            struct.pack(">2i", 0x801, count) + labels)


def versions_text(versions):
    text = ", ".join(f"{name} {version}" for name, version in versions.items())
    return textwrap.fill(text, 79)


def quantile(values, q):
    """Linear between the order statistics, as NumPy's default."""
    values = sorted(values)
    at = q * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])


def summary(samples):
    return {"median": quantile(samples, 0.5), "min": min(samples),
            "p25": quantile(samples, 0.25), "p75": quantile(samples, 0.75),
            "max": max(samples), "samples": samples}


def spread(losses):
    """How far apart the furthest two of some losses are, relatively."""
    return (max(losses) - min(losses)) / min(losses)


def outlier(losses):
    """The name whose loss is furthest from the middle one."""
    middle = quantile(losses.values(), 0.5)
    return max(losses, key=lambda name: abs(losses[name] - middle))
