# SPDX-License-Identifier: Apache-2.0
"""The ways to train many models that bench/search_bench compares.

Each is a function of a Task that trains all models of it and returns an
Outcome: what an epoch of one model costs, in the median of the epochs after
WARM_UP. Compiling, starting and loading are in its wall_seconds alone.
"""
import concurrent.futures
import dataclasses
import os
import time

import approaches
from approaches import Failed, run_json

WARM_UP = 1  # epochs, as in compare: caches, predictors and pools are cold


@dataclasses.dataclass(frozen=True)
class Task:
    data: str
    model: str  # "784-128-10"
    batch: int
    lrs: tuple  # texts, one a model
    epochs: int  # the first WARM_UP among them
    threads: int
    seed: int
    trainer: str
    input: str

    def flags(self, threads=None):
        """What trainer and peers have in common."""
        return ("--data", self.data, "--validation", 0.2, "--batch", self.batch,
                "--epochs", self.epochs, "--threads", threads or self.threads,
                "--seed", self.seed)


@dataclasses.dataclass
class Outcome:
    losses: dict  # rate: loss of the first epoch
    seconds: float  # of an epoch of one model
    wall_seconds: float  # likewise, of all that the processes do
    notes: dict = dataclasses.field(default_factory=dict)


def timed(seconds):
    """What epochs take: the median without the first."""
    return approaches.quantile(seconds[WARM_UP:] or seconds, 0.5)


def search(task, group):
    """All models in one `trainer search`, in one wave."""
    models = len(task.lrs)
    hidden = "-".join(task.model.split("-")[1:-1])
    start = time.perf_counter()
    result = run_json([
        task.trainer, "search", "--json", "--group", group, "--lr",
        ",".join(task.lrs), "--hidden", hidden, "--parallel", models, "--input",
        task.input, *task.flags()])
    wall = time.perf_counter() - start
    short = [wave for wave in result["waves"] if wave["trials"] != models]
    if short or len(result["waves"]) != task.epochs:
        raise Failed(f"want {task.epochs} epochs of {models} models in a wave, "
                     f"got {result['waves']}")
    seconds = [wave["train_seconds"] for wave in result["waves"]]
    losses = {lr: trial["epochs"][0]["loss"]
              for lr, trial in zip(task.lrs, result["trials"], strict=True)}
    return Outcome(losses, timed(seconds) / models,
                   wall / (models * task.epochs),
                   {"groups": result["groups"]})


def train(task, lr, threads, dispatch):
    """The epochs of one model by itself."""
    return run_json([task.trainer, "train", "--json", "--model", task.model,
                     "--lr", lr, "--dispatch", dispatch, "--input", task.input,
                     *task.flags(threads)])["epochs"]


def of_runs(task, runs, start, at_once):
    seconds = [timed([epoch["seconds"] for epoch in epochs])
               for epochs in runs]
    losses = {lr: epochs[0]["loss"] for lr, epochs in zip(task.lrs, runs)}
    wall = time.perf_counter() - start
    return Outcome(losses, sum(seconds) / len(runs) / at_once,
                   wall / (len(runs) * task.epochs))


def one_by_one(task, dispatch):
    """`trainer train` after `trainer train`, each on all threads."""
    start = time.perf_counter()
    runs = [train(task, lr, task.threads, dispatch) for lr in task.lrs]
    return of_runs(task, runs, start, at_once=1)


def pool(task):
    """As many processes at once as threads, each on one thread.

    Its seconds are the epochs' own over the processes that run side by side,
    as if none ever waited for the last; wall_seconds is what passed.
    """
    at_once = min(task.threads, len(task.lrs), len(os.sched_getaffinity(0)))
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(at_once) as executor:
        runs = list(executor.map(
            lambda lr: train(task, lr, 1, "auto"), task.lrs))
    return of_runs(task, runs, start, at_once)


def vmap(task, mode):
    """All models in one program of JAX."""
    models = len(task.lrs)
    start = time.perf_counter()
    result = run_json([approaches.VENV / "bin" / "python",
                       approaches.PEERS / "jax_vmap.py", "--mode", mode,
                       "--model", task.model, "--lr", ",".join(task.lrs),
                       *task.flags()])
    wall = time.perf_counter() - start
    seconds = [epoch["seconds"] for epoch in result["epochs"]]
    losses = dict(zip(task.lrs, result["epochs"][0]["loss"], strict=True))
    return Outcome(losses, timed(seconds) / models,
                   wall / (models * task.epochs),
                   {"matmuls": result["matmuls"],
                    "versions": result["versions"]})


WAYS = {
    "search-auto": lambda task: search(task, "auto"),
    "search-vector": lambda task: search(task, "vector"),
    "search-loop": lambda task: search(task, "loop"),
    "train-auto": lambda task: one_by_one(task, "auto"),
    "train-single": lambda task: one_by_one(task, "single"),
    "pool": pool,
    "jax-vmap-jit": lambda task: vmap(task, "jit"),
    "jax-vmap-scan": lambda task: vmap(task, "scan"),
}
