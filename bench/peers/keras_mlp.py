#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keras: fit(), many steps an execution, on TensorFlow or on JAX.

TensorFlow is the backend that Keras takes when not told; JAX is the faster one
here at small batches.
"""
import options

args = options.parse(("tensorflow", "jax"))

import os  # noqa: E402

os.environ["KERAS_BACKEND"] = args.mode
os.environ["JAX_CPU_ENABLE_ASYNC_DISPATCH"] = "0"  # see jax_mlp.py

import keras  # noqa: E402

import workload  # noqa: E402


class Trainer:
    """jit_compile is what Keras takes by itself: XLA for JAX, and TensorFlow's
    own kernels, oneDNN's, on a CPU, where XLA was not faster.
    """

    def __init__(self, work):
        self.work = work
        features, hidden = work.params[0].shape
        classes = work.params[2].shape[1]
        self.model = keras.Sequential([
            keras.layers.Input((features,), dtype="uint8"),
            keras.layers.Rescaling(float(workload.INPUT_SCALE)),
            keras.layers.Dense(hidden, "relu"),
            keras.layers.Dense(classes),
        ])
        self.model.compile(
            keras.optimizers.SGD(float(work.lr)),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            steps_per_execution=max(1, min(work.full_steps, 100)))
        self.prepare()
        # Compiles; the weights are set only then.
        self.epoch(work.order(0))
        self.model.set_weights(work.params)

    def prepare(self):
        pass

    def fit(self, *data, **flags):
        # The loss that fit() returns is the mean over rows.
        return self.model.fit(*data, epochs=1, verbose=0, shuffle=False,
                              **flags).history["loss"][0]


class TensorFlow(Trainer):
    def prepare(self):
        import tensorflow as tf

        work, batch = self.work, self.work.batch
        images, labels = tf.constant(work.images), tf.constant(work.labels)
        # A variable, so that one pipeline serves every epoch.
        self.order = order = tf.Variable(work.order(0))

        def fetch(start):
            rows = order[start:start + batch]
            return tf.gather(images, rows), tf.gather(labels, rows)

        self.batches = tf.data.Dataset.range(
            0, work.rows, batch, output_type=tf.int32).map(fetch).prefetch(4)

    def epoch(self, order):
        self.order.assign(order)
        return self.fit(self.batches)


class Jax(Trainer):
    def epoch(self, order):
        return self.fit(self.work.images[order], self.work.labels[order],
                        batch_size=self.work.batch)


def versions():
    backend = __import__(args.mode)
    return {"keras": keras.__version__, args.mode: backend.__version__}


if __name__ == "__main__":
    trainer, name = {"tensorflow": (TensorFlow, "keras"),
                     "jax": (Jax, "keras-jax")}[args.mode]
    workload.run(name, args, trainer, versions())
