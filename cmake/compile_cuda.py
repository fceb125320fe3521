#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles one .cu file and keeps what the compiler says of its kernels.

compile_cuda.py FOLDER STEM NVCC FLAGS...

makes in FOLDER STEM.o, STEM.d (what it depends on), STEM.ptxas (registers and
memory of each kernel) and STEM.*.ptx. What else nvcc says goes to stderr.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# What `ptxas -v` prints beside its warnings and errors.
REPORT = re.compile(r"ptxas info|    \d+ bytes stack frame")


def main(folder, stem, nvcc, *flags):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{stem}.o"
    with tempfile.TemporaryDirectory(dir=folder) as kept:
        done = subprocess.run(
            [nvcc, *flags, "-c", "-o", target, "-Xptxas=-v",
             "-MD", "-MT", target, "-MF", folder / f"{stem}.d",
             "--keep", "--keep-dir", kept],
            stderr=subprocess.PIPE, text=True, check=False)
        report, rest = [], []
        for line in done.stderr.splitlines(keepends=True):
            (report if REPORT.match(line) else rest).append(line)
        sys.stderr.writelines(rest)
        if done.returncode:
            return done.returncode
        for old in folder.glob(f"{stem}.*.ptx"):
            old.unlink()
        for ptx in pathlib.Path(kept).glob("*.ptx"):
            arch = re.search(r"^\.target (sm_\w+)", ptx.read_text(), re.M)[1]
            shutil.move(ptx, folder / f"{stem}.{arch}.ptx")
    (folder / f"{stem}.ptxas").write_text("".join(report))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
