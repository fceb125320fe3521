# SPDX-License-Identifier: Apache-2.0
"""The work that all approaches do: onestep's data, weights and row order.

Everything random is drawn as onestep draws it (trainer/data/random.h), so that
the losses of all approaches can be compared, epoch by epoch.
"""
import dataclasses
import gzip
import json
import pathlib
import sys
import time

import numpy as np

INPUT_SCALE = np.float32(1) / np.float32(255)

# What each stream of a seed is for, see trainer/data/random.h.
EPOCH_STREAM = 1 << 32
INIT_STREAM = 3 << 32


# --- trainer/data/random.h --------------------------------------------------


def mix(x):
    """SplitMix64's bijection of 64 bits; x is an array of uint64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def draws(seed, stream, count):
    """The first numbers of a stream, uniform over 64 bits."""
    start = np.uint64(seed) + mix(np.array([stream], np.uint64))
    steps = np.arange(1, count + 1, dtype=np.uint64)
    return mix(start + steps * np.uint64(0x9E3779B97F4A7C15))


def normals(seed, stream, count):
    """Box and Muller's: two draws a number, radius before angle."""
    uniform = (draws(seed, stream, 2 * count) >> np.uint64(11)) * 2.0**-53
    radius = np.sqrt(-2 * np.log(1 - uniform[0::2]))
    return radius * np.cos(2 * np.pi * uniform[1::2])


def permutation(seed, stream, n):
    """0..n-1 shuffled by Fisher and Yates, as int32."""
    x = draws(seed, stream, n - 1)
    below = np.arange(n, 1, -1, dtype=np.uint64)
    # random.h draws again below 2^64 mod n. That takes luck of n in 2^64, so
    # here it is only looked for.
    if (x < (np.uint64(0) - below) % below).any():
        raise NotImplementedError(f"seed {seed}: a draw to be drawn again")
    order = list(range(n))
    for i, j in zip(range(n - 1, 0, -1), (x % below).tolist()):
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int32)


# --- trainer/model.cc, trainer/data -----------------------------------------


def init_params(widths, seed):
    """[w1, b1, w2, b2, ...], fp32; w is [in, out], He's normal, b is 0."""
    params = []
    for fan_in, fan_out in zip(widths, widths[1:]):
        w = normals(seed, INIT_STREAM | len(params), fan_in * fan_out)
        w = (np.sqrt(2 / fan_in) * w).astype(np.float32)
        params += [w.reshape(fan_in, fan_out), np.zeros(fan_out, np.float32)]
    return params


def read_idx(folder, name):
    plain = pathlib.Path(folder, name)
    for path in (plain, plain.with_name(name + ".gz")):
        if path.exists():
            break
    else:
        raise SystemExit(f"{folder}: want {name} or {name}.gz there")
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    if content[:3] != b"\0\0\x08":
        raise SystemExit(f"{path}: want an IDX file of unsigned bytes")
    rank = content[3]
    dims = np.frombuffer(content, ">i4", rank, offset=4)
    data = np.frombuffer(content, np.uint8, offset=4 + 4 * rank)
    return data.reshape(dims)


@dataclasses.dataclass
class Workload:
    images: np.ndarray  # u8 [rows, features], the train rows only
    labels: np.ndarray  # i32 [rows]
    params: list        # [w1, b1, w2, b2], see init_params
    batch: int
    lr: np.float32  # of many models, an array of them
    seed: int

    @property
    def rows(self):
        return len(self.labels)

    @property
    def full_steps(self):
        return self.rows // self.batch

    @property
    def full_rows(self):
        """Rows of the whole batches; the rest are one step of their own."""
        return self.full_steps * self.batch

    @property
    def batches(self):
        """The sizes of the steps there are: a whole batch, the tail."""
        sizes = [self.batch, self.rows - self.full_rows]
        return [size for size in sizes if 0 < size <= self.rows]

    def pixels(self):
        return self.images * INPUT_SCALE

    def order(self, epoch):
        """Of the rows, trainer/data/split.cc; epochs count from 0."""
        return permutation(self.seed, EPOCH_STREAM | epoch, self.rows)

    def weigh(self, losses):
        """The mean over rows of an epoch, of the mean losses of its steps.

        A float; of losses [steps, models] a list.
        """
        losses = np.asarray(losses, np.float64)
        rows = np.full(len(losses), self.batch)
        if self.rows > self.full_rows:
            rows[-1] = self.rows - self.full_rows
        return (rows @ losses / self.rows).tolist()


def load(args):
    if len(args.model) != 3:
        raise SystemExit("--model: the peers want two layers, like 784-128-10")
    images = read_idx(args.data, "train-images-idx3-ubyte")
    labels = read_idx(args.data, "train-labels-idx1-ubyte")
    rows = len(labels) - round(args.validation * len(labels))
    images = np.ascontiguousarray(images[:rows]).reshape(rows, -1)
    if images.shape[1] != args.model[0]:
        raise SystemExit(f"--model: want {images.shape[1]} features")
    return Workload(images, labels[:rows].astype(np.int32),
                    init_params(args.model, args.seed), args.batch,
                    np.float32(args.lr), args.seed)


def run(approach, args, trainer_class, versions):
    """Trains --epochs epochs and prints the JSON object.

    A trainer is made of a workload, which is where it compiles, and leaves the
    weights as they were; its epoch(order) trains one epoch and returns the mean
    loss as a float, or a list of the models', so nothing of it is still running
    then. Its notes, if it has any, are printed too.
    """
    work = load(args)
    start = time.perf_counter()
    trainer = trainer_class(work)
    compile_seconds = time.perf_counter() - start

    epochs = []
    for epoch in range(args.epochs):
        order = work.order(epoch)
        start = time.perf_counter()
        loss = trainer.epoch(order)
        epochs.append({"loss": loss, "seconds": time.perf_counter() - start})
    json.dump({"approach": approach, "versions": versions,
               "threads": args.threads, "batch": args.batch,
               "epochs": epochs, "compile_seconds": compile_seconds,
               **getattr(trainer, "notes", {})},
              sys.stdout, indent=1)
    print()
