#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on a GPU: eager, compiled, or captured by hand in a CUDA graph.

graph replays one step, graph-k --steps-per-launch of them.
"""
import gpu_common

args = gpu_common.parse(("eager", "compile", "graph", "graph-k"))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import workload  # noqa: E402

DEVICE = {"gpu": "cuda", "cpu": "cpu"}[args.device]
SCALE = float(workload.INPUT_SCALE)
torch.backends.cuda.matmul.allow_tf32 = args.math == "tf32"


def mean_loss(params, x, y):
    w1, b1, w2, b2 = params
    h = torch.addmm(b1, x, w1).relu()
    return F.cross_entropy(torch.addmm(b2, h, w2), y)


class Trainer:
    """The place in the order is on the device: a step takes nothing along."""
    steps_per_call = 1

    def __init__(self, work, order):
        self.lr, self.batch, self.rows = float(work.lr), work.batch, len(order)
        self.images = torch.from_numpy(work.images.copy()).to(DEVICE)
        self.labels = torch.from_numpy(work.labels).long().to(DEVICE)
        self.order = torch.from_numpy(order).long().to(DEVICE)
        self.place = torch.arange(work.batch, device=DEVICE)
        self.params = [torch.from_numpy(p.copy()).to(DEVICE)
                       for p in work.params]

    def rows_of_step(self):
        rows = self.order.index_select(0, self.place)
        self.place.add_(self.batch).remainder_(self.rows)
        return rows

    def eager_step(self):
        rows = self.rows_of_step()
        x = self.images.index_select(0, rows).float().mul_(SCALE)
        loss = mean_loss(self.params, x, self.labels.index_select(0, rows))
        gradients = torch.autograd.grad(loss, self.params)
        with torch.no_grad():
            for p, d in zip(self.params, gradients):
                p.sub_(d, alpha=self.lr)
        return loss.detach()

    def sync(self):
        if DEVICE == "cuda":
            torch.cuda.synchronize()

    def losses(self, count):
        return [float(self.call()) for _ in range(count)]


class Eager(Trainer):
    def __init__(self, _, work, order):
        super().__init__(work, order)
        for p in self.params:
            p.requires_grad_()

    def call(self):
        return self.eager_step()


class Compiled(Trainer):
    def __init__(self, _, work, order):
        super().__init__(work, order)
        # What is updated in place keeps its address, so that a graph may.
        for tensor in (*self.params, self.place):
            torch._dynamo.mark_static_address(tensor)

        def step(params, images, labels, order, place):
            rows = order[place]
            x = images[rows].float() * SCALE
            gradients, loss = torch.func.grad_and_value(mean_loss)(
                params, x, labels[rows])
            for p, d in zip(params, gradients):
                p.sub_(d, alpha=self.lr)
            place.add_(self.batch).remainder_(self.rows)
            return loss

        self.compiled = torch.compile(step, mode="reduce-overhead",
                                      fullgraph=True, dynamic=False)

    def call(self):
        with torch.no_grad():
            torch.compiler.cudagraph_mark_step_begin()
            return self.compiled(self.params, self.images, self.labels,
                                 self.order, self.place)


class Captured(Trainer):
    def __init__(self, flags, work, order):
        super().__init__(work, order)
        if flags.mode == "graph-k":
            self.steps_per_call = flags.steps_per_launch
        for p in self.params:
            p.requires_grad_()
        first = [t.detach().clone() for t in (*self.params, self.place)]
        # On a stream of its own, as capture wants, until all is loaded.
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.eager_step()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.step_losses = [self.eager_step()
                                for _ in range(self.steps_per_call)]
        with torch.no_grad():
            for tensor, value in zip((*self.params, self.place), first):
                tensor.copy_(value)

    def call(self):
        self.graph.replay()

    def losses(self, count):
        losses = []
        while len(losses) < count:
            self.call()
            losses += [float(loss) for loss in self.step_losses]
        return losses[:count]


if __name__ == "__main__":
    trainer = {"eager": Eager, "compile": Compiled, "graph": Captured,
               "graph-k": Captured}[args.mode]
    gpu_common.run(f"torch-{args.mode}", args, trainer,
                   {"torch": torch.__version__, "cuda": torch.version.cuda})
