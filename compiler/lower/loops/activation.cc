// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/activation.h"

#include <cstring>

#include "compiler/lower/loops/loop_op.h"

namespace onestep::loops {

Implementations LowerActivation(const LoopOp& op) {
  return op.Loop([op] {
    return op.Elementwise([act = op.attrs<ActivationAttrs>().activation,
                           x = op.In(0), y = op.Out()](int64_t b, int64_t n) {
      cpu::ActivationForward(act, *x + b, *y + b, n);
    });
  });
}

Implementations LowerActivationGrad(const LoopOp& op) {
  return op.Loop([op]() -> LoopOp::Call {
    const ActivationGradOp grad(op.node());
    const Activation act = grad.attrs.activation;
    float* const* saved = op.At(grad.saved);
    float* const* dy = op.At(grad.dy);
    float* const* dx = op.Out(ActivationGradOp::kDx);
    if (grad.attrs.bias == BiasGrad::kNone) {
      return op.Elementwise([=](int64_t b, int64_t n) {
        cpu::ActivationBackward(act, *saved + b, *dy + b, *dx + b, n);
      });
    }
    const bool update = grad.attrs.bias == BiasGrad::kUpdate;
    return op.ByCols(op.out(), [=, bias = op.At(grad.bias),
                                db = op.Out(ActivationGradOp::kBiasGrad),
                                rows = Rows(op.out()), cols = Cols(op.out())](
                                   int64_t begin, int64_t end) {
      if (update && *bias != *db) {
        std::memcpy(*db + begin, *bias + begin, (end - begin) * sizeof(float));
      }
      cpu::ActivationGradBias(act, *saved, *dy, *dx, *db, update, rows, cols,
                              begin, end);
    });
  });
}

}  // namespace onestep::loops
