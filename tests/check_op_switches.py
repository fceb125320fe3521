#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no code asks which op a node is by a switch over OpKind.

What an op means stands in its family's files (compiler/ir/ops) and in the
lowerings of the family (compiler/lower/<backend>); others ask for a rule.

check_op_switches.py              checks the repository, one line per switch
check_op_switches.py --self-test  checks that a switch is found
"""
import pathlib
import re
import sys
import tempfile

FOLDERS = ("bench", "compiler", "kernels", "runtime", "tests", "trainer")
OF_FAMILIES = re.compile(r"compiler/(ir/ops|lower/(loops|onednn|cuda))/")
CASE = re.compile(r"\bcase\s+(onestep::)?OpKind::")


def errors_in(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in (".h", ".cc", ".cu", ".cuh", ".def"):
                continue
            if OF_FAMILIES.match(name):
                continue
            for line, text in enumerate(
                    path.read_text(errors="replace").splitlines(), 1):
                if CASE.search(text):
                    yield f"{name}:{line}: a switch over OpKind"


def self_test():
    texts = {"compiler/passes/a.cc": "case OpKind::kAdd:",
             "tests/b.cc": "  case  onestep::OpKind::kAdd:",
             "compiler/ir/ops/c.cc": "case OpKind::kAdd:",
             "trainer/d.cc": "if (kind == OpKind::kAdd)"}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        found = {e.split(":")[0] for e in errors_in(pathlib.Path(folder))}
    wrong = found ^ {"compiler/passes/a.cc", "tests/b.cc"}
    return [f"self-test: {name}" for name in sorted(wrong)]


if __name__ == "__main__":
    ROOT = pathlib.Path(__file__).resolve().parents[1]
    errors = (self_test() if sys.argv[1:] == ["--self-test"]
              else list(errors_in(ROOT)))
    print("\n".join(errors or ["ok"]))
    sys.exit(bool(errors))
