# SPDX-License-Identifier: Apache-2.0
"""The train step in JAX, on a CPU and on a GPU."""
import jax
import jax.numpy as jnp
import workload


def mean_loss(params, x, y):
    w1, b1, w2, b2 = params
    z = jax.nn.relu(x @ w1 + b1) @ w2 + b2
    picked = jax.nn.log_softmax(z) * jax.nn.one_hot(y, z.shape[1])
    return -picked.sum() / len(y)


def sgd(params, data, rows, lr):
    images, labels = data
    x = images[rows].astype(jnp.float32) * workload.INPUT_SCALE
    loss, gradients = jax.value_and_grad(mean_loss)(params, x, labels[rows])
    return [p - lr * d for p, d in zip(params, gradients)], loss
