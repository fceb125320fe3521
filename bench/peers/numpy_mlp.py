#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NumPy: backpropagation by hand, every array allocated once."""
import options

args = options.parse()

import numpy as np  # noqa: E402
import threadpoolctl  # noqa: E402

import workload  # noqa: E402


class Buffers:
    """What a step of n rows writes."""

    def __init__(self, n, widths):
        features, hidden, classes = widths
        f32 = np.float32
        self.pixels = np.empty((n, features), np.uint8)
        self.x = np.empty((n, features), f32)
        self.y = np.empty(n, np.int32)
        self.h = np.empty((n, hidden), f32)
        self.mask = np.empty((n, hidden), bool)
        self.dh = np.empty((n, hidden), f32)
        self.z = np.empty((n, classes), f32)
        self.row = np.empty((n, 1), f32)
        self.range = np.arange(n)
        self.ones = np.ones(n, f32)


class Trainer:
    def __init__(self, work):
        self.work = work
        self.w1, self.b1, self.w2, self.b2 = (p.copy() for p in work.params)
        self.dw1, self.db1 = np.empty_like(self.w1), np.empty_like(self.b1)
        self.dw2, self.db2 = np.empty_like(self.w2), np.empty_like(self.b2)
        widths = (*self.w1.shape, self.w2.shape[1])
        self.buffers = {n: Buffers(n, widths) for n in work.batches}

    def epoch(self, order):
        batch = self.work.batch
        return self.work.weigh([self.step(order[i:i + batch])
                                for i in range(0, len(order), batch)])

    def step(self, rows):
        n = len(rows)
        a = self.buffers[n]
        w1, b1, w2, b2 = self.w1, self.b1, self.w2, self.b2
        # Rows of bytes are a quarter of the memory to fetch. mode: the default
        # one fetches into a copy.
        np.take(self.work.images, rows, axis=0, out=a.pixels, mode="clip")
        np.multiply(a.pixels, workload.INPUT_SCALE, out=a.x)
        np.take(self.work.labels, rows, out=a.y, mode="clip")

        np.matmul(a.x, w1, out=a.h)
        np.add(a.h, b1, out=a.h)
        np.maximum(a.h, 0, out=a.h)
        np.matmul(a.h, w2, out=a.z)
        np.add(a.z, b2, out=a.z)

        # z becomes the softmax, then the gradient of the logits times lr:
        # scaling 10 columns is cheaper than scaling what follows from them.
        np.max(a.z, axis=1, keepdims=True, out=a.row)
        np.subtract(a.z, a.row, out=a.z)
        at_label = a.z[a.range, a.y]
        np.exp(a.z, out=a.z)
        np.sum(a.z, axis=1, keepdims=True, out=a.row)
        loss = (np.log(a.row).sum() - at_label.sum()) / n
        np.divide(a.z, a.row, out=a.z)
        a.z[a.range, a.y] -= 1
        np.multiply(a.z, self.work.lr / np.float32(n), out=a.z)

        np.matmul(a.z, w2.T, out=a.dh)
        np.greater(a.h, 0, out=a.mask)
        np.multiply(a.dh, a.mask, out=a.dh)
        np.matmul(a.h.T, a.z, out=self.dw2)
        np.matmul(a.x.T, a.dh, out=self.dw1)
        np.matmul(a.ones, a.z, out=self.db2)  # BLAS sums columns faster
        np.matmul(a.ones, a.dh, out=self.db1)
        for p, d in ((w1, self.dw1), (b1, self.db1), (w2, self.dw2),
                     (b2, self.db2)):
            np.subtract(p, d, out=p)
        return loss


def versions():
    blas = threadpoolctl.threadpool_info()[0]
    return {"numpy": np.__version__,
            blas["internal_api"]: f"{blas['version']} {blas['architecture']}"}


if __name__ == "__main__":
    workload.run("numpy", args, Trainer, versions())
