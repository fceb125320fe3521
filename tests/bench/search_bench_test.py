#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/search_bench with a program in the trainer's place."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "search_bench"

# Answers as the trainer does. An epoch of a search takes 2 s whatever its
# models, that of one model 3 s; the first, cold, ten times as much.
TRAINER = """
    #!{python}
    import json, os, sys
    verb, *flags = sys.argv[1:]
    value = dict(zip(flags, flags[1:]))
    epochs = int(value.get("--epochs", 1))
    models = value.get("--lr", "0.1").split(",")
    fault = os.environ.get("FAULT", "")
    def loss(lr):
        return 1 / float(lr) * (1.01 if fault == "loss" and verb == "search"
                                else 1)
    def seconds(epoch, steady):
        return steady * (10 if epoch == 1 else 1)
    numbers = range(1, epochs + 1)
    def trials(epoch):
        return len(models) - (fault == "dropped" and epoch == 2)
    print(json.dumps({{
        "info": lambda: {{"cpu": {{"model": "a CPU", "physical_cores": 2}}}},
        "bench": lambda: {{"peak_gflops": 500.0}},
        "train": lambda: {{"epochs": [
            {{"loss": loss(models[0]), "seconds": seconds(e, 3.0)}}
            for e in numbers]}},
        "search": lambda: {{
            "trials": [{{"epochs": [{{"loss": None if fault == "diverged"
                                      else loss(lr)}}]}} for lr in models],
            "groups": [{{"way": value["--group"], "vector_us": 1.25,
                         "loop_us": None}}],
            "waves": [{{"trials": trials(e), "train_seconds": seconds(e, 2.0)}}
                      for e in numbers]}},
    }}[verb]()))
    """


class SearchBenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.trainer = pathlib.Path(folder.name, "trainer")
        self.trainer.write_text(
            textwrap.dedent(TRAINER).lstrip().format(python=sys.executable))
        self.trainer.chmod(0o755)

    def bench(self, *flags, fault=""):
        return subprocess.run(
            [sys.executable, str(BENCH), "--quick", "--trainer",
             str(self.trainer), *flags], env=os.environ | {"FAULT": fault},
            capture_output=True, text=True)

    def test_seconds_are_of_one_model_without_the_first_epoch(self):
        done = self.bench("--json", "--ways", "search-vector,train-single,pool")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        rows = {(row["way"], row["models"]): row for row in report["results"]}
        at_once = min(2, len(os.sched_getaffinity(0)))
        self.assertEqual(
            {key: row["median"] for key, row in rows.items()},
            {("search-vector", 1): 2, ("search-vector", 5): 0.4,
             ("train-single", 1): 3, ("train-single", 5): 3,
             ("pool", 1): 3, ("pool", 5): 3 / at_once})
        self.assertAlmostEqual(rows["train-single", 5]["ratio"]["median"], 7.5)
        self.assertEqual(report["base"], "search-vector")

    def test_text_has_times_ratios_and_what_a_group_was_measured_at(self):
        done = self.bench("--ways", "search-auto,train-auto")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("8-16-4, batch 8: ms per epoch of one model, median of 1",
                     "train-auto                 3000.000           3000.000",
                     "7.50 (7.50-7.50)", "FMA peak 500 GFLOP/s before",
                     "search-auto, 5 models: auto, measured: vector 1.25 us a "
                     "model step"):
            self.assertIn(part, done.stdout)

    def test_refuses_losses_that_differ(self):
        done = self.bench("--ways", "search-auto,train-auto", fault="loss")
        self.assertEqual(done.returncode, 1)
        self.assertIn("losses of 8-16-4 at lr 0.001 differ by 1.0e-02, want "
                      "1e-03", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_refuses_a_model_that_diverged(self):
        done = self.bench("--ways", "search-auto,train-auto", fault="diverged")
        self.assertEqual(done.returncode, 1)
        self.assertIn("8-16-4 diverged at lr 0.001: ", done.stderr)

    def test_does_not_time_a_search_that_trained_fewer_models(self):
        done = self.bench("--ways", "search-auto,train-auto", fault="dropped")
        self.assertEqual(done.returncode, 1)
        self.assertIn("search-auto, 8-16-4: not measured: want 2 epochs of 5 "
                      "models in a wave", done.stdout)
        self.assertIn("train-auto", done.stdout)

    def test_names_what_it_does_not_know(self):
        done = self.bench("--ways", "search")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--ways: no search", done.stderr)
        done = subprocess.run([sys.executable, str(BENCH)], text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--data: 784-128-10 wants a folder", done.stderr)


if __name__ == "__main__":
    unittest.main()
