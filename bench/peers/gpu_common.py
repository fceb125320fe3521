# SPDX-License-Identifier: Apache-2.0
"""What the peers on a GPU share: flags, the work, the loss check, the clock.

A peer prints a JSON object per batch, one a line. Its steps, from the fetch of
the rows to the update, see weights, data and the order of the rows on the
device; the losses of the first steps are held against fp64 in NumPy.
"""
import argparse
import json
import statistics
import sys
import time

import numpy as np

import workload

WIDTHS = (784, 128, 10)
RANDOM_ROWS = 48000
CHECKED_STEPS = 20
ROUNDS = 5             # of queued steps; their median counts
SYNCED_STEPS = 200
QUEUED_SECONDS = 0.3   # a round is about that long


def parse(modes):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", default=modes[0], choices=modes)
    parser.add_argument("--data", help="folder of IDX files [random rows]")
    parser.add_argument("--batches", default="32,128,512,4096",
                        type=lambda text: [int(b) for b in text.split(",")])
    parser.add_argument("--math", default="fp32", choices=("fp32", "tf32"))
    parser.add_argument("--lr", default=0.1, type=float)
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--steps-per-launch", default=16, type=int)
    parser.add_argument("--device", default="gpu", choices=("gpu", "cpu"),
                        help="cpu: to try the program out")
    return parser.parse_args()


def load(args, batch):
    """A workload of whole batches: its order is cut to them."""
    if args.data:
        images = workload.read_idx(args.data, "train-images-idx3-ubyte")
        labels = workload.read_idx(args.data, "train-labels-idx1-ubyte")
        images = images.reshape(len(labels), -1)
    else:
        random = np.random.default_rng(args.seed)
        images = random.integers(0, 256, (RANDOM_ROWS, WIDTHS[0]), np.uint8)
        images[random.random(images.shape) < 0.8] = 0
        labels = random.integers(0, WIDTHS[-1], RANDOM_ROWS)
    return workload.Workload(np.ascontiguousarray(images),
                             labels.astype(np.int32),
                             workload.init_params(WIDTHS, args.seed), batch,
                             np.float32(args.lr), args.seed)


def reference_losses(work, order):
    """Of the first steps, in fp64."""
    w1, b1, w2, b2 = [p.astype(np.float64) for p in work.params]
    lr, losses = float(work.lr), []
    for step in range(CHECKED_STEPS):
        rows = order[step * work.batch:(step + 1) * work.batch]
        if len(rows) < work.batch:
            break
        x = work.images[rows] * float(workload.INPUT_SCALE)
        h = np.maximum(x @ w1 + b1, 0)
        z = h @ w2 + b2
        z -= z.max(axis=1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        picked = np.arange(len(rows)), work.labels[rows]
        losses.append(-log_p[picked].mean())
        d = np.exp(log_p)
        d[picked] -= 1
        d /= len(rows)
        e = (d @ w2.T) * (h > 0)
        w2 -= lr * h.T @ d
        b2 -= lr * d.sum(axis=0)
        w1 -= lr * x.T @ e
        b1 -= lr * e.sum(axis=0)
    return losses


def worst_difference(losses, reference):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, reference))


def synced_us(call, sync, steps_per_call):
    """The median of calls that are each waited for, per step."""
    times = []
    for _ in range(max(20, SYNCED_STEPS // steps_per_call)):
        start = time.perf_counter()
        call()
        sync()
        times.append(time.perf_counter() - start)
    return statistics.median(times) / steps_per_call * 1e6


def queued_us(call, sync, steps_per_call):
    """Calls one after the other, waited for at the end, per step."""
    def seconds(calls):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        sync()
        return time.perf_counter() - start

    calls = max(1, round(QUEUED_SECONDS / max(seconds(10) / 10, 1e-7)))
    rounds = [seconds(calls) / calls for _ in range(ROUNDS)]
    return statistics.median(rounds) / steps_per_call * 1e6


def run(approach, args, trainer_class, versions):
    """Times each batch.

    A trainer is made of (args, work, order). It has steps_per_call, call(),
    sync(), and losses(n): the losses of its first n steps or fewer, before
    any other call.
    """
    for batch in args.batches:
        work = load(args, batch)
        order = work.order(0)[:work.full_rows]
        start = time.perf_counter()
        trainer = trainer_class(args, work, order)
        losses = trainer.losses(min(CHECKED_STEPS, work.full_steps))
        compile_seconds = time.perf_counter() - start
        times = (trainer.call, trainer.sync, trainer.steps_per_call)
        json.dump({"approach": approach, "versions": versions,
                   "math": args.math, "batch": batch,
                   "steps_per_call": trainer.steps_per_call,
                   "step_us": synced_us(*times),
                   "queued_us": queued_us(*times),
                   "checked_steps": len(losses),
                   "loss_difference": worst_difference(
                       losses, reference_losses(work, order)),
                   "compile_seconds": compile_seconds}, sys.stdout)
        print(flush=True)
