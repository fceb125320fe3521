#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX: a jitted call per step, or one lax.scan over the epoch."""
import options

args = options.parse(("jit", "scan"))

import jax  # noqa: E402
import jaxlib  # noqa: E402

import workload  # noqa: E402
from jax_step import sgd  # noqa: E402
from jax_trainers import MODES  # noqa: E402


def trainer(work):
    def update(params, data, rows):
        return sgd(params, data, rows, work.lr)

    return MODES[args.mode](work, work.params, update)


if __name__ == "__main__":
    workload.run(f"jax-{args.mode}", args, trainer,
                 {"jax": jax.__version__, "jaxlib": jaxlib.__version__})
