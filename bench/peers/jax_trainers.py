# SPDX-License-Identifier: Apache-2.0
"""JAX: a jitted call per step, or one lax.scan over the epoch.

Either way the weights are donated, so that they are updated in place, and the
data and the epoch's order of the rows are on the device.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np

# Handing a step to another thread costs more than a small step does, and a
# large one gains nothing: the next one waits for its weights.
jax.config.update("jax_cpu_enable_async_dispatch", False)


class Trainer:
    """update(params, data, rows) gives the params and loss after a step.

    The loss is a scalar or, of many models, a vector.
    """

    def __init__(self, work, params, update):
        self.work = work
        self.data = jnp.asarray(work.images), jnp.asarray(work.labels)
        self.params = [jnp.array(p) for p in params]
        self.update = update


class Jit(Trainer):
    def __init__(self, work, params, update):
        super().__init__(work, params, update)

        # What goes from step to step stays on the device, the place in the
        # order too, so that a call has nothing to convert.
        @functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
        def step(size, state, data, order):
            params, start, total = state
            rows = jax.lax.dynamic_slice(order, (start,), (size,))
            params, loss = update(params, data, rows)
            return params, start + size, total + size * loss

        self.step = step
        order = jnp.arange(work.rows, dtype=jnp.int32)
        self.losses = jax.eval_shape(update, self.params, self.data,
                                     order[:work.batches[0]])[1].shape
        for size in work.batches:
            step(size, self.start(jax.tree.map(jnp.copy, self.params)),
                 self.data, order)
        self.hlo = step.lower(work.batches[0], self.start(self.params),
                              self.data, order).compile().as_text()

    def start(self, params):
        return params, jnp.int32(0), jnp.zeros(self.losses, jnp.float32)

    def epoch(self, order):
        work, data, order = self.work, self.data, jnp.asarray(order)
        state = self.start(self.params)
        for _ in range(work.full_steps):
            state = self.step(work.batch, state, data, order)
        if work.rows > work.full_rows:
            state = self.step(work.rows - work.full_rows, state, data, order)
        self.params, _, total = state
        return (np.asarray(total, np.float64) / work.rows).tolist()


class Scan(Trainer):
    def __init__(self, work, params, update):
        super().__init__(work, params, update)
        # Only a step of a few microseconds gains from fewer turns of the loop.
        unroll = 4 if work.batch < 32 else 1

        def epoch(params, data, order):
            def step(params, rows):
                return update(params, data, rows)

            full = order[:work.full_rows].reshape(-1, work.batch)
            params, losses = jax.lax.scan(step, params, full, unroll=unroll)
            if work.rows > work.full_rows:
                params, loss = step(params, order[work.full_rows:])
                losses = jnp.concatenate([losses, loss[None]])
            return params, losses

        order = jax.ShapeDtypeStruct((work.rows,), jnp.int32)
        self.compiled = jax.jit(epoch, donate_argnums=0).lower(
            self.params, self.data, order).compile()
        self.hlo = self.compiled.as_text()

    def epoch(self, order):
        self.params, losses = self.compiled(self.params, self.data,
                                            jnp.asarray(order))
        return self.work.weigh(np.asarray(losses))


MODES = {"jit": Jit, "scan": Scan}
