// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise.h"

#include <cstring>

#include "compiler/lower/loops/loop_op.h"
#include "kernels/cpu/models/interleaved.h"
#include "kernels/cpu/rows.h"

namespace onestep::loops {
namespace {

// In a node of many models each has a factor of its own.
LoopOp::Call MulScalarOfModels(const LoopOp& op) {
  const int64_t models = op.models();
  float* const* factor = op.Scratch((models + cpu::kRepeatPad) * sizeof(float));
  return [loop = op.Elementwise([x = op.In(0), y = op.Out(), factor, models](
                                    int64_t b, int64_t n) {
    cpu::InterleavedScale(*factor, *x, *y, {models, b, b + n});
  }),
          alpha = op.attrs<ScaleAttrs>().alpha, s = op.In(1), factor, models] {
    cpu::RepeatModels(alpha, *s, models, *factor);
    loop();
  };
}

}  // namespace

Implementations LowerCast(const LoopOp& op) {
  return op.Loop([op]() -> LoopOp::Call {
    float* const* y = op.Out();
    switch (op.node().operands[0].type().dtype) {
      case DType::kU8:
        return op.Elementwise([x = op.In<uint8_t>(0), y](int64_t b, int64_t n) {
          cpu::CastU8(*x + b, *y + b, n);
        });
      case DType::kI32:
        return op.Elementwise([x = op.In<int32_t>(0), y](int64_t b, int64_t n) {
          cpu::CastI32(*x + b, *y + b, n);
        });
      case DType::kF32:
        break;
    }
    return op.Elementwise([x = op.In(0), y](int64_t b, int64_t n) {
      if (*x != *y) std::memcpy(*y + b, *x + b, n * sizeof(float));
    });
  });
}

Implementations LowerScale(const LoopOp& op) {
  return op.Loop([op] {
    return op.Elementwise(
        [alpha = op.attrs<ScaleAttrs>().alpha, x = op.In(0), y = op.Out()](
            int64_t b, int64_t n) { cpu::Scale(alpha, *x + b, *y + b, n); });
  });
}

Implementations LowerMulScalar(const LoopOp& op) {
  return op.Loop([op]() -> LoopOp::Call {
    if (op.models() > 1) return MulScalarOfModels(op);
    return op.Elementwise([alpha = op.attrs<ScaleAttrs>().alpha, x = op.In(0),
                           s = op.In(1), y = op.Out()](int64_t b, int64_t n) {
      cpu::Scale(alpha * **s, *x + b, *y + b, n);
    });
  });
}

Implementations LowerAdd(const LoopOp& op) {
  return op.Loop([op] {
    return op.Elementwise(
        [x = op.In(0), z = op.In(1), y = op.Out()](int64_t b, int64_t n) {
          cpu::Add(*x + b, *z + b, *y + b, n);
        });
  });
}

Implementations LowerMul(const LoopOp& op) {
  return op.Loop([op] {
    return op.Elementwise(
        [x = op.In(0), z = op.In(1), y = op.Out()](int64_t b, int64_t n) {
          cpu::Mul(*x + b, *z + b, *y + b, n);
        });
  });
}

Implementations LowerAddBias(const LoopOp& op) {
  return op.Loop([op] {
    return op.ByRows(op.out(), [x = op.In(0), bias = op.In(1), y = op.Out(),
                                cols = Cols(op.out())](int64_t b, int64_t e) {
      cpu::AddBias(*x + b * cols, *bias, *y + b * cols, e - b, cols);
    });
  });
}

Implementations LowerReduceRows(const LoopOp& op) {
  return op.Loop([op] {
    const Value x = op.node().operands[0];
    return op.ByCols(x, [x = op.At(x), y = op.Out(), rows = Rows(x),
                         cols = Cols(x)](int64_t b, int64_t e) {
      cpu::ReduceRows(*x, *y, false, rows, cols, b, e);
    });
  });
}

Implementations LowerBroadcastRows(const LoopOp& op) {
  return op.Loop([op] {
    return op.ByRows(op.out(), [x = op.In(0), y = op.Out(),
                                cols = Cols(op.out())](int64_t b, int64_t e) {
      cpu::BroadcastRows(*x, *y + b * cols, e - b, cols);
    });
  });
}

}  // namespace onestep::loops
