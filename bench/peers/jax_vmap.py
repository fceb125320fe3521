#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX: many models in one step by vmap, each at a rate of --lr.

They have the same first weights and batches; a batch is fetched once for all.
Prints the losses of the models, and the matmuls that XLA made of a step.
"""
import options

args = options.parse(("jit", "scan"), many=True)

import re  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jaxlib  # noqa: E402

import workload  # noqa: E402
from jax_step import sgd  # noqa: E402
from jax_trainers import MODES  # noqa: E402


def matmuls(hlo):
    """The results' shapes of the matmuls in a compiled program."""
    return [match[1] + (" batched" if "batch_dims={" in match[2] else "")
            for match in re.finditer(r"= (\S+) dot\((.*)", hlo)]


def trainer(work):
    step = jax.vmap(sgd, in_axes=(0, None, None, 0))

    def update(params, data, rows):
        return step(params, data, rows, work.lr)

    params = [jnp.stack([p] * len(args.lr)) for p in work.params]
    made = MODES[args.mode](work, params, update)
    made.notes = {"lr": args.lr, "matmuls": matmuls(made.hlo)}
    return made


if __name__ == "__main__":
    workload.run(f"jax-vmap-{args.mode}", args, trainer,
                 {"jax": jax.__version__, "jaxlib": jaxlib.__version__})
