#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX on a GPU: a jitted call per step, or one lax.scan over the epoch."""
import functools

import gpu_common

args = gpu_common.parse(("jit", "scan"))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jaxlib  # noqa: E402
import numpy as np  # noqa: E402

from jax_step import sgd  # noqa: E402

jax.config.update("jax_platforms", {"gpu": "cuda", "cpu": "cpu"}[args.device])
jax.config.update("jax_default_matmul_precision",
                  {"fp32": "highest", "tf32": "tensorfloat32"}[args.math])


class Trainer:
    def __init__(self, work, order):
        self.data = jnp.asarray(work.images), jnp.asarray(work.labels)
        self.params = [jnp.array(p) for p in work.params]
        self.order = jnp.asarray(order)

    def sync(self):
        jax.block_until_ready(self.params)


class Jit(Trainer):
    steps_per_call = 1

    def __init__(self, _, work, order):
        super().__init__(work, order)

        # The place in the order stays on the device, too.
        @functools.partial(jax.jit, donate_argnums=0)
        def step(state, data, order):
            params, start = state
            rows = jax.lax.dynamic_slice(order, (start,), (work.batch,))
            params, loss = sgd(params, data, rows, work.lr)
            start = start + work.batch
            start = jnp.where(start + work.batch > len(order), 0, start)
            return (params, start), loss

        self.step = step
        self.start = jnp.int32(0)

    def call(self):
        state, loss = self.step((self.params, self.start), self.data,
                                self.order)
        self.params, self.start = state
        return loss

    def losses(self, count):
        return [float(self.call()) for _ in range(count)]


class Scan(Trainer):
    def __init__(self, _, work, order):
        super().__init__(work, order)
        self.steps_per_call = work.full_steps

        @functools.partial(jax.jit, donate_argnums=0)
        def epoch(params, data, order):
            return jax.lax.scan(
                lambda params, rows: sgd(params, data, rows, work.lr),
                params, order.reshape(-1, work.batch))

        self.epoch = epoch

    def call(self):
        self.params, losses = self.epoch(self.params, self.data, self.order)
        return losses

    def losses(self, count):
        return np.asarray(self.call())[:count].tolist()


if __name__ == "__main__":
    gpu_common.run(f"jax-{args.mode}", args, {"jit": Jit, "scan": Scan}[args.mode],
                   {"jax": jax.__version__, "jaxlib": jaxlib.__version__})
