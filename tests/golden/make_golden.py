#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains small nets in NumPy float64 and writes what a test compares with.

Written from the mathematics, without a look at the C++ code: this is the
second opinion about gradients, losses and updates. Needs NumPy; the tests
need only the files. Run it in any folder: python3 make_golden.py

NAME.json is one object:
  widths        [features, hidden ..., classes]
  activation    relu | gelu (exact, with erf) | tanh | sigmoid; all names are
                those of the command line
  loss          cross-entropy | mse (mean over all elements of (y - onehot)^2)
  optimizer     sgd | momentum | adam | adamw, with momentum, nesterov,
                beta1, beta2, epsilon and weight_decay (of biases as well)
  rows, batch, steps
  images        u8 [rows, features]; the net sees images / 255
  labels        [rows]
  indices       [steps, batch], rows of the table; a row may come twice
  lr            [steps]
  loss_values   [steps], each before the step's update
  correct       [steps], rows whose first largest output is at the label
  initial       [{name, dims, data}, ...]: w1 [in, out], b1 [out], w2, ...
  final         the same after the last step, then the optimizer's state:
                w1.v (momentum), w1.m and w1.v (adam, adamw), b1.v, ...
All arrays are flat and row-major. Whatever a float32 trainer is given (lr,
initial, the optimizer's constants) is a float32 number written exactly.
"""
import json
import math
import pathlib

import numpy as np

STEPS = 20
NETS = {
    "sgd": dict(widths=[12, 7, 5], activation="relu", loss="cross-entropy",
                optimizer="sgd", batch=6, lr=0.5),
    "adam": dict(widths=[12, 9, 8, 4], activation="gelu", loss="cross-entropy",
                 optimizer="adam", weight_decay=0.02, batch=7, lr=0.02),
    "nesterov": dict(widths=[10, 6, 3], activation="tanh", loss="cross-entropy",
                     optimizer="momentum", nesterov=True, weight_decay=0.01,
                     batch=5, lr=0.1),
    "adamw": dict(widths=[9, 5, 4], activation="sigmoid", loss="mse",
                  optimizer="adamw", weight_decay=0.05, batch=8, lr=0.03),
    "linear": dict(widths=[8, 4], activation="relu", loss="mse",
                   optimizer="momentum", batch=3, lr=0.2),
}


def single(x):
    """The nearest float32 numbers, as float64."""
    return np.float64(np.float32(x))


def erf(x):
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def phi(x):  # the normal density
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


# name -> (f, f')
ACTIVATIONS = {
    "relu": (lambda z: np.where(z > 0, z, 0), lambda z: 1.0 * (z > 0)),
    "tanh": (np.tanh, lambda z: 1 / np.cosh(z) ** 2),
    "sigmoid": (lambda z: 1 / (1 + np.exp(-z)),
                lambda z: np.exp(-z) / (1 + np.exp(-z)) ** 2),
    "gelu": (lambda z: z / 2 * (1 + erf(z / math.sqrt(2))),
             lambda z: (1 + erf(z / math.sqrt(2))) / 2 + z * phi(z)),
}


def forward(net, params, x):
    """The sums of each layer, and what each layer was given."""
    f, _ = ACTIVATIONS[net["activation"]]
    sums, inputs = [], [x]
    for layer in range(len(net["widths"]) - 1):
        if layer:
            inputs.append(f(sums[-1]))
        w, b = params[f"w{layer + 1}"], params[f"b{layer + 1}"]
        sums.append(inputs[-1] @ w + b)
    return sums, inputs


def loss_of(net, y, labels):
    """The loss and its derivative by y."""
    target = np.eye(y.shape[1], dtype=y.dtype)[labels]
    if net["loss"] == "mse":
        return np.mean((y - target) ** 2), 2 * (y - target) / y.size
    shifted = y - y.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    log_p = shifted - log_sum
    return -np.mean((log_p * target).sum(axis=1)), \
        (np.exp(log_p) - target) / len(y)


def gradients(net, params, x, labels):
    _, derivative = ACTIVATIONS[net["activation"]]
    sums, inputs = forward(net, params, x)
    loss, delta = loss_of(net, sums[-1], labels)
    grads = {}
    for layer in range(len(sums), 0, -1):
        grads[f"w{layer}"] = inputs[layer - 1].T @ delta
        grads[f"b{layer}"] = delta.sum(axis=0)
        if layer > 1:
            delta = delta @ params[f"w{layer}"].T * derivative(sums[layer - 2])
    return loss, grads, sums


def check_gradients(net, params, x, labels):
    """Against central differences, for every parameter."""
    _, grads, sums = gradients(net, params, x, labels)
    if net["activation"] == "relu":  # no kink inside a difference
        assert all(abs(s).min() > 1e-4 for s in sums[:-1])
    h = 1e-5
    for name, value in params.items():
        for i in np.ndindex(value.shape):
            def moved(step):
                changed = dict(params, **{name: value.copy()})
                changed[name][i] += step
                return loss_of(net, forward(net, changed, x)[0][-1], labels)[0]
            slope = (moved(h) - moved(-h)) / (2 * h)
            assert abs(slope - grads[name][i]) < 1e-8, (name, i)


def update(net, w, grad, state, name, lr, step):
    """Sutskever et al. 2013 with the gradient at w; Kingma and Ba 2015;
    Loshchilov and Hutter 2019."""
    decay, kind = net["weight_decay"], net["optimizer"]
    g = grad if kind == "adamw" else grad + decay * w
    if kind == "sgd":
        return w - lr * g
    if kind == "momentum":
        v = state[name + ".v"] = net["momentum"] * state[name + ".v"] + g
        return w - lr * (g + net["momentum"] * v if net["nesterov"] else v)
    b1, b2 = net["beta1"], net["beta2"]
    m = state[name + ".m"] = b1 * state[name + ".m"] + (1 - b1) * g
    v = state[name + ".v"] = b2 * state[name + ".v"] + (1 - b2) * g * g
    change = m / (1 - b1**step) / (np.sqrt(v / (1 - b2**step)) + net["epsilon"])
    if kind == "adamw":
        change = change + decay * w
    return w - lr * change


def train(net, initial, dtype, check=False):
    params = {k: v.astype(dtype) for k, v in initial.items()}
    slots = {"sgd": "", "momentum": "v", "adam": "mv", "adamw": "mv"}
    state = {f"{k}.{s}": np.zeros_like(v) for k, v in params.items()
             for s in slots[net["optimizer"]]}
    losses, correct = [], []
    for step, rows in enumerate(net["indices"], 1):
        x = net["images"][rows].astype(dtype) / dtype(255)
        labels = net["labels"][rows]
        if check and step in (1, STEPS // 2, STEPS):
            check_gradients(net, params, x, labels)
        loss, grads, sums = gradients(net, params, x, labels)
        losses.append(loss)
        correct.append(int((sums[-1].argmax(axis=1) == labels).sum()))
        lr = dtype(net["lr"][step - 1])
        params = {k: update(net, w, grads[k], state, k, lr, step).astype(dtype)
                  for k, w in params.items()}
    return np.array(losses), correct, params | state


def tensors(named):
    return [dict(name=k, dims=list(v.shape), data=v.ravel().tolist())
            for k, v in named.items()]


def make(name, seed):
    rng = np.random.default_rng(seed)
    net = dict(momentum=0.9, nesterov=False, beta1=0.9, beta2=0.999,
               epsilon=1e-8, weight_decay=0.0) | NETS[name]
    for key in ("momentum", "beta1", "beta2", "epsilon", "weight_decay"):
        net[key] = float(single(net[key]))
    rows, widths = 4 * net["batch"] + 1, net["widths"]
    bright = rng.integers(1, 256, (rows, widths[0]))
    net["images"] = bright * (rng.random(bright.shape) < 0.6)
    net["labels"] = rng.integers(0, widths[-1], rows)
    net["indices"] = rng.integers(0, rows, (STEPS, net["batch"]))
    # Up and down, so that a step with its neighbour's rate is seen.
    net["lr"] = single(net["lr"] * (1 + np.cos(np.arange(STEPS)) / 2))
    initial = {}
    for layer, (fan_in, fan_out) in enumerate(zip(widths, widths[1:]), 1):
        w = rng.standard_normal((fan_in, fan_out)) * math.sqrt(2 / fan_in)
        initial[f"w{layer}"] = single(w)
        initial[f"b{layer}"] = single(rng.standard_normal(fan_out) / 4)

    losses, correct, final = train(net, initial, np.float64, check=True)
    losses32, correct32, final32 = train(net, initial, np.float32)
    # Float32 must not decide anything: no tie, no kink, no tiny gradient that
    # adam would blow up. A test may ask for ten times these errors.
    error = max(abs(final[k] - final32[k]).max() for k in final)
    assert correct == correct32 and error < 1e-5
    print(f"{name}: loss {losses[0]:.4f} to {losses[-1]:.4f}; float32 is off by"
          f" {abs(losses - losses32).max():.1e} (loss), {error:.1e} (final)")

    content = {k: net[k] for k in (
        "widths", "activation", "loss", "optimizer", "momentum", "nesterov",
        "beta1", "beta2", "epsilon", "weight_decay")}
    content |= dict(rows=rows, batch=net["batch"], steps=STEPS)
    content |= {k: net[k].ravel().tolist()
                for k in ("images", "labels", "indices", "lr")}
    content |= dict(loss_values=losses.tolist(), correct=correct,
                    initial=tensors(initial), final=tensors(final))
    lines = [f'"{k}": {json.dumps(v)}' for k, v in content.items()]
    path = pathlib.Path(__file__).with_name(name + ".json")
    path.write_text("{" + ",\n ".join(lines) + "}\n")


for number, net_name in enumerate(NETS):
    make(net_name, seed=number)
