#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every #include points down: trainer, compiler, runtime, kernels.

check_includes.py              checks the repository, one line per error
check_includes.py --self-test  checks that wrong includes are found
"""
import pathlib
import re
import sys
import tempfile

CORE = r"|runtime/(clock|nvtx|types|status|nearest)\.h$"
# Folder -> which of our headers its files may include; the first that fits.
ALLOWED = {
    "compiler/ir/": r"compiler/ir/" + CORE,
    "compiler/passes/": r"compiler/(ir|passes)/" + CORE,
    "compiler/lower/": r"compiler/(ir|lower)/|compiler/passes/partition\.h$"
                       r"|runtime/|kernels/",
    "compiler/": r"compiler/|runtime/",
    "runtime/": r"runtime/|kernels/(launch|probe|probe_launch)\.h$",
    "kernels/": r"kernels/",
    "trainer/": r"trainer/|compiler/compiler\.h$|runtime/|kernels/probe\.h$",
}
OURS = re.compile(r"(compiler|runtime|kernels|trainer|tests|bench)/")
DNNL, DNNL_USER = re.compile(r"(oneapi/dnnl/)?dnnl.*\.h"), "runtime/onednn.cc"
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


def errors_in(root):
    for folder, allowed in ALLOWED.items():
        for path in sorted((root / folder).rglob("*.*")):
            name = path.relative_to(root).as_posix()
            if folder != next(f for f in ALLOWED if name.startswith(f)):
                continue  # a more exact row is about this file
            text = path.read_text(errors="replace")
            for match in INCLUDE.finditer(text):
                header = match[1]
                if (OURS.match(header) and not re.match(allowed, header)
                        or (path.parent / header).is_file()  # not from the root
                        or DNNL.match(header) and name != DNNL_USER
                        or header.startswith("absl/") and folder == "kernels/"):
                    line = text.count("\n", 0, match.start(1)) + 1
                    yield f"{name}:{line}: must not include {header}"


def self_test():
    wrong = {"kernels/a.h": "runtime/types.h", "kernels/b.cu": "absl/x.h",
             "runtime/a.cc": "kernels/reference.h", "runtime/b.h": "dnnl.hpp",
             "compiler/ir/a.h": "runtime/executable.h",
             "compiler/passes/a.cc": "compiler/lower/lower.h",
             "compiler/a.cc": "trainer/model.h", "trainer/b.h": "tests/a.h",
             "trainer/a.cc": "compiler/ir/graph.h", "runtime/c.h": "b.h"}
    right = {"runtime/d.cc": "kernels/probe.h", "runtime/e.cc": "vector",
             "compiler/lower/a.cc": "kernels/a.h", "tests/a.h": "dnnl.h"}
    with tempfile.TemporaryDirectory() as folder:
        for name, header in (wrong | right).items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'// one line\n\n  # include "{header}"\n')
        found = set(errors_in(pathlib.Path(folder)))
    want = {f"{n}:3: must not include {h}" for n, h in wrong.items()}
    return [f"self-test: {e}" for e in sorted(want ^ found)]


if __name__ == "__main__":
    ROOT = pathlib.Path(__file__).resolve().parents[1]
    errors = (self_test() if sys.argv[1:] == ["--self-test"]
              else list(errors_in(ROOT)))
    print("\n".join(errors or ["ok"]))
    sys.exit(bool(errors))
