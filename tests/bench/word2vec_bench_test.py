#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/word2vec_bench and word2vec_quality with one program for all others."""
import json
import lzma
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
WORDS = 1000  # of the text; the synthetic one has others

# Answers as trainer, python with gensim_peer.py, word2vec_files and
# word2vec_synthetic do, told apart by its name. FAULT: what it does wrong.
PROGRAM = r"""
    #!{python}
    import json, os, pathlib, struct, sys
    name = pathlib.Path(sys.argv[0]).name
    verb, *flags = sys.argv[2:] if name == "python" else sys.argv[1:]
    fault = os.environ.get("FAULT", "")
    def value(flag, default=None):
        return flags[flags.index(flag) + 1] if flag in flags else default
    words = 0
    if "--epochs" in flags:
        text = len(pathlib.Path(flags[0]).read_text().split())
        words = int(value("--max-words", text)) * int(value("--epochs"))
    def times(text, binary):
        return {{kind: {{"save_seconds": s, "load_seconds": 2 * s,
                         "same": fault != "bits"}}
                 for kind, s in (("text", text), ("binary", binary))}} | {{
            "against": {{file: fault != "exchange"
                         for file in flags[flags.index("--against") + 1:]}}
            if "--against" in flags else {{}}}}
    def scores(spearman):
        return {{"pairs": {{pathlib.Path(file).stem: {{"spearman": spearman}}
                            for file in value("--pairs", "").split(",")}},
                 "questions": {{"accuracy": 0.3, "asked": 9}}}}
    def gensim():
        if fault == "blas":
            sys.exit("gensim: want OpenBLAS, got no BLAS")
        answer = {{"versions": {{"gensim": "4", "OpenBLAS": "0.3"}}}}
        if verb == "versions":
            return answer | {{"pairs": "a/wordsim353.tsv", "questions": "b"}}
        if verb == "files":
            return answer | times(3.0, 1.0)
        if verb == "score":
            return answer | scores(0.4 if fault == "quality" else 0.5)
        seconds = {{"file": 2.0, "iterator": 4.0}}[value("--reader")]
        return answer | scores(0.5) | {{
            "words": words, "seconds": seconds / int(value("--workers"))}}
    def word2vec():
        seconds = {{"shared": 0.2, "exact": 0.4, None: 0.5}}[
            value("--negatives")] / float(os.environ.get("SPEEDUP", 2)) ** (
            int(value("--threads")) - 1)
        unfused = "--fuse" in flags or "--disable-pass" in flags
        differ = float(os.environ.get("DIFFER", 1))
        out = pathlib.Path(value("--out"))
        out.mkdir(exist_ok=True)
        (out / "vectors.bin").write_bytes(
            b"2 2\n" + b"".join(
                word + b" " + struct.pack("<2f", 0.5, second) + b"\n"
                for word, second in ((b"a", 4), (b"b", 1 + differ * unfused))))
        return {{"words": words // 2 if fault == "words" else words,
                 "seconds": seconds * (50 if unfused else 1),
                 "loss": 2.5 + (unfused and fault == "loss")}}
    def evaluate():
        score = 0.4 if fault in ("quality", "scorer") else 0.5
        return {{"pairs": [{{"file": file, "spearman": score}}
                           for file in value("--pairs").split(",")],
                 "questions": {{"totals": [
                     {{"section": "semantic", "accuracy": 0.9}},
                     {{"section": "total", "accuracy": 0.3}}]}}}}
    def synthetic():
        out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
        out.mkdir()
        (out / "corpus.txt").write_text("w " * 300)
    ns = float(os.environ.get("NS", 40))
    if name == "python":
        print(json.dumps(gensim()))
    elif name == "word2vec_files":
        flags = sys.argv[1:]
        print(json.dumps(times(1.0, 0.5)))
    elif name == "word2vec_synthetic":
        synthetic()
    else:
        print(json.dumps({{
            "info": lambda: {{
                "cpu": {{"model": "a CPU", "physical_cores": 2}},
                "core_latency": {{"cpus": [0, 1], "ns": ns, "far": ns > 100}}}},
            "bench": lambda: {{"peak_gflops": 250.0}},
            "word2vec": word2vec, "word2vec-eval": evaluate}}[verb]()))
    """


class BenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        program = textwrap.dedent(PROGRAM).lstrip().format(
            python=sys.executable)
        for name in ("trainer", "python", "word2vec_files",
                     "word2vec_synthetic"):
            (self.folder / name).write_text(program)
            (self.folder / name).chmod(0o755)
        (self.folder / "text").write_text(10 * ("word " * 100 + "\n"))

    def bench(self, name, *flags, **environment):
        return subprocess.run(
            [sys.executable, BENCH / name, "--trainer",
             self.folder / "trainer", "--python", self.folder / "python",
             "--tools", self.folder, "--corpus", self.folder / "text",
             *map(str, flags)], env=os.environ | environment,
            capture_output=True, text=True)


class SpeedTest(BenchTest):
    def report(self, *flags, **environment):
        done = self.bench("word2vec_bench", "--json", "--repeats", 2, *flags,
                          **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_ratio_is_to_the_faster_of_gensims_readers(self):
        rows = {row["way"]: row for row in
                self.report("--parts", "training", "--ways", ",".join((
                    "shared", "cbow", "shared-2", "gensim-skip-gram-file",
                    "gensim-skip-gram-iterator", "gensim-cbow-file",
                    "gensim-skip-gram-file-2")))["training"]}
        shared, file = rows["shared"], rows["gensim-skip-gram-file"]
        self.assertEqual(shared["words_per_s"]["median"], WORDS / 0.2)
        self.assertEqual(file["words_per_s"]["samples"], 2 * [WORDS / 2.0])
        self.assertAlmostEqual(shared["to_gensim"]["median"], 10)
        self.assertIsNone(file["to_gensim"])
        self.assertAlmostEqual(rows["cbow"]["to_gensim"]["median"], 4)
        self.assertAlmostEqual(rows["shared-2"]["to_gensim"]["median"], 10)

    def test_two_threads_are_held_to_one_by_how_far_cores_are(self):
        for ns, place in ((40, "near"), (180, "far")):
            report = self.report("--ways", "shared,shared-2", "--parts",
                                 "training", NS=str(ns))
            one, two = report["training"]
            self.assertEqual(one["to_one_thread"], {})
            self.assertAlmostEqual(two["to_one_thread"][place]["median"], 2)
            self.assertEqual(two["core_latency"][0][0]["ns"], ns)
            self.assertEqual(one["core_latency"][0], [None, None])

    def test_text_says_what_was_wanted_and_how_far_cores_are(self):
        done = self.bench(
            "word2vec_bench", "--repeats", 1, "--ways",
            "shared,cbow,shared-2,gensim-skip-gram-file,gensim-cbow-file",
            NS="180", SPEEDUP="0.75")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in (
                r"shared +0\.005 \(0\.005-0\.005\) +10\.00 \(.*\) +8 +PASS",
                r"cbow +0\.002 \(.*\) +4\.00 \(.*\) +4\.5 +short by 0\.5",
                r"shared-2 +180-180 far +far 0\.75 \(.*\) +1 +short by 0\.25",
                r"shared, dense gradients \(--fuse off\) +2,000 .* 50\.00 .*"
                r" +20 +PASS +2\.5e-01\n",
                r"exact, sparse gradients \(--disable-pass fuse-sparse-window\)"
                r" +200,000 .* 50\.00 \(50\.00-50\.00\) +2\.5e-01\n",
                r"exact, dense gradients \(--fuse off\) +2,000 .* 50\.00 .*"
                r" +20 +PASS +2\.5e-01 +1e-05 +over by 0\.25\n",
                r"save text +3\.000 \(.*\) +1\.000 .* 3\.00 \(.*\) +3 +PASS",
                r"FMA peak of one thread 250 GFLOP/s before, 250 after"):
            self.assertRegex(done.stdout, line)

    def test_exact_vectors_are_held_to_those_of_the_textbooks_graph(self):
        done = self.bench("word2vec_bench", "--repeats", 1, "--parts",
                          "unfused", DIFFER="2e-5")
        self.assertRegex(done.stdout, r"exact, dense .* 5\.0e-06 +1e-05 +PASS")

    def test_markdown_is_tables(self):
        done = self.bench("word2vec_bench", "--repeats", 1, "--ways", "shared",
                          "--parts", "training", "--markdown")
        self.assertIn("| way | million words/s | x gensim | want |  |\n"
                      "| :-- | --: | --: | --: | --: |\n| shared | 0.005",
                      done.stdout)

    def test_uses_the_first_words_of_an_xz_text(self):
        packed = self.folder / "text.xz"
        packed.write_bytes(lzma.compress(
            (self.folder / "text").read_bytes()))
        report = self.report("--corpus", packed, "--words", "0.00015",
                             "--parts", "files")
        self.assertEqual(report["corpus"], {"name": "text", "words": 200})

    def test_refuses_what_is_no_comparison(self):
        for fault, part, message in (
                ("blas", "training", "gensim: want OpenBLAS, got no BLAS"),
                ("words", "training", "want 1000 words trained, got 500"),
                ("loss", "unfused", "losses differ, want within 0.001"),
                ("bits", "files", "text lost bits"),
                ("exchange", "files", "the other program read other bits")):
            done = self.bench("word2vec_bench", "--repeats", 1, "--parts", part,
                              "--ways", "shared", FAULT=fault)
            self.assertEqual(done.returncode, 1, fault)
            self.assertIn(message, done.stderr)

    def test_names_what_it_does_not_know(self):
        done = self.bench("word2vec_bench", "--ways", "share")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--ways: no share", done.stderr)


class QualityTest(BenchTest):
    def quality(self, *flags, **environment):
        return self.bench("word2vec_quality", "--ways", "shared", "--seeds", 2,
                          *flags, **environment)

    def test_passes_where_no_mean_is_lower_than_allowed(self):
        done = self.quality("--runs", self.folder / "runs")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in (r"shared +wordsim353 +0\.500 0\.500 +0\.500 0\.500 +"
                     r"\+0\.000 +-0\.015 +PASS",
                     r"shared +planted questions +30\.0 30\.0 .* \+-2 +PASS"):
            self.assertRegex(done.stdout, line)
        again = self.quality("--runs", self.folder / "runs")
        self.assertNotIn("gensim-skip-gram-file-text-seed1: trains",
                         again.stderr, "gensim's runs are kept")
        self.assertIn("shared-text-seed1: trains", again.stderr)

    def test_says_by_how_much_it_is_too_low(self):
        done = self.quality("--json", "--synthetic", 0, FAULT="quality")
        self.assertEqual(done.returncode, 1, done.stderr)
        row = json.loads(done.stdout)["results"][0]
        self.assertAlmostEqual(row["difference"], -0.1)
        self.assertAlmostEqual(row["excess"], 0.085)

    def test_refuses_scorers_that_disagree(self):
        done = self.quality(FAULT="scorer")
        self.assertEqual(done.returncode, 1)
        self.assertIn("wordsim353: gensim says 0.5000, word2vec-eval 0.4000",
                      done.stderr)


if __name__ == "__main__":
    unittest.main()
