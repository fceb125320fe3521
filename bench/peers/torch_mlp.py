#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch, eager or compiled.

Plain tensors, [in, out] weights and an update in place, for nn.Module and
torch.optim cost a fifth more at small batches. Eager differentiates with
autograd; compiled is torch.func and one graph for the whole step, from the
fetch of the rows to the update, where a compiled module with loss.backward()
is three.
"""
import options

args = options.parse(("eager", "compile"))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import workload  # noqa: E402

torch.set_num_threads(args.threads)
torch.set_num_interop_threads(1)


def mean_loss(params, x, y):
    w1, b1, w2, b2 = params
    h = torch.addmm(b1, x, w1).relu()
    return F.cross_entropy(torch.addmm(b2, h, w2), y)


class Trainer:
    def __init__(self, work):
        self.work = work
        self.lr = float(work.lr)
        self.scale = float(workload.INPUT_SCALE)
        self.images = torch.from_numpy(work.images.copy())
        self.labels = torch.from_numpy(work.labels).long()
        self.params = [torch.from_numpy(p.copy()) for p in work.params]

    def epoch(self, order):
        losses = [self.step(rows)
                  for rows in torch.from_numpy(order).split(self.work.batch)]
        return self.work.weigh(torch.stack(losses).numpy())


class Eager(Trainer):
    def __init__(self, work):
        super().__init__(work)
        for p in self.params:
            p.requires_grad_()

    def step(self, rows):
        x = self.images.index_select(0, rows).float().mul_(self.scale)
        y = self.labels.index_select(0, rows)
        loss = mean_loss(self.params, x, y)
        gradients = torch.autograd.grad(loss, self.params)
        with torch.no_grad():
            for p, d in zip(self.params, gradients):
                p.sub_(d, alpha=self.lr)
        return loss.detach()


class Compiled(Trainer):
    def __init__(self, work):
        super().__init__(work)

        # All tensors are arguments: those of a closure are checked each call.
        def step(params, images, labels, rows):
            x = images[rows].float() * self.scale
            gradients, loss = torch.func.grad_and_value(mean_loss)(
                params, x, labels[rows])
            for p, d in zip(params, gradients):
                p.sub_(d, alpha=self.lr)
            return loss

        # dynamic: the tail gets a graph of its own, not one for any size.
        self.compiled = torch.compile(step, fullgraph=True, dynamic=False)
        with torch.inference_mode():
            self.params = [p.clone() for p in self.params]
            spare = [p.clone() for p in self.params]
            for size in work.batches:
                self.compiled(spare, self.images, self.labels,
                              torch.arange(size, dtype=torch.int32))

    def step(self, rows):
        return self.compiled(self.params, self.images, self.labels, rows)

    def epoch(self, order):
        with torch.inference_mode():
            return super().epoch(order)


if __name__ == "__main__":
    trainer = {"eager": Eager, "compile": Compiled}[args.mode]
    workload.run(f"torch-{args.mode}", args, trainer,
                 {"torch": torch.__version__})
