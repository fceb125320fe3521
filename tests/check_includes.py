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

CORE = (r"|runtime/base/(clock|nvtx|types|status|nearest)\.h$"
        r"|kernels/(activation\.h|activations\.def|update\.h|update_rules\.inc)$")
LOWER = r"compiler/(ir|lower)/|compiler/passes/partition\.h$|runtime/|kernels/"
# Folder -> which of our headers its files may include; the first that fits.
ALLOWED = {
    "compiler/ir/": r"compiler/ir/" + CORE,
    "compiler/passes/": r"compiler/(ir|passes)/" + CORE,
    "compiler/lower/loops/": LOWER,
    "compiler/lower/onednn/": LOWER,
    "compiler/lower/cuda/": LOWER,
    "compiler/lower/": LOWER,
    "compiler/": r"compiler/|runtime/",
    "runtime/base/": r"runtime/base/",
    "runtime/cpu/":
        r"runtime/(base|cpu)/|kernels/(activation|launch|probe)\.h$",
    "runtime/cuda/": r"runtime/(base|cuda)/|kernels/(launch|probe_launch)\.h$",
    "runtime/": r"nothing",
    "kernels/cpu/models/": r"kernels/[^/]*$|kernels/cpu/(models/)?[^/]*$",
    "kernels/cpu/word2vec/": r"kernels/[^/]*$|kernels/cpu/(word2vec/)?[^/]*$",
    "kernels/cpu/": r"kernels/[^/]*$|kernels/cpu/[^/]*$",
    "kernels/cuda/hidden_split/": r"kernels/[^/]*$|kernels/cuda/",
    "kernels/cuda/": r"kernels/[^/]*$|kernels/cuda/[^/]*$",
    "kernels/": r"kernels/[^/]*$",
    "trainer/":
        r"trainer/|compiler/compiler\.h$|runtime/|kernels/(activation|probe)\.h$",
}
OURS = re.compile(r"(compiler|runtime|kernels|trainer|tests|bench)/")
DNNL = re.compile(r"(oneapi/dnnl/)?dnnl.*\.h")
DNNL_USER = "runtime/cpu/onednn.cc"
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
                        or header.startswith("absl/") and name.startswith("kernels/")):
                    line = text.count("\n", 0, match.start(1)) + 1
                    yield f"{name}:{line}: must not include {header}"


def self_test():
    wrong = {"kernels/a.h": "runtime/base/types.h", "kernels/b.cu": "absl/x.h",
             "runtime/cpu/a.cc": "kernels/reference.h",
             "runtime/cpu/b.h": "dnnl.hpp", "kernels/cpu/c.h": "absl/y.h",
             "runtime/base/a.h": "runtime/cpu/team.h",
             "runtime/cpu/e.h": "runtime/cuda/cuda_api.h",
             "kernels/cpu/a.h": "kernels/cpu/models/interleaved.h",
             "compiler/ir/a.h": "runtime/base/executable.h",
             "compiler/passes/a.cc": "compiler/lower/lower.h",
             "compiler/a.cc": "trainer/model.h", "trainer/b.h": "tests/a.h",
             "trainer/a.cc": "compiler/ir/graph.h", "runtime/cpu/c.h": "e.h"}
    right = {"runtime/cpu/d.cc": "kernels/probe.h", "runtime/cpu/f.cc": "vector",
             "compiler/lower/a.cc": "kernels/a.h", "tests/a.h": "dnnl.h",
             "compiler/ir/b.h": "kernels/activation.h"}
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
