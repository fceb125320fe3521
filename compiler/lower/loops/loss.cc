// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/loss.h"

#include <cstring>

#include "compiler/lower/loops/loop_op.h"
#include "kernels/cpu/models/interleaved.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/word2vec/sigmoid_bce.h"

namespace onestep::loops {
namespace {

// Values of the first operand's rows in the scratch, by rows_fn(per_row, begin,
// end), and then alpha times their sum.
template <typename Fn>
LoopOp::Call SumOverRows(const LoopOp& op, float alpha, Fn rows_fn) {
  const Value x = op.node().operands[0];
  const int64_t rows = Rows(x);
  return
      [rows_fn, alpha, rows, grain = RowGrain(Cols(x)), threads = op.threads(),
       y = op.Out(), per_row = op.Scratch(rows * sizeof(float))] {
        ParallelFor(threads, rows, grain,
                    [&](int64_t b, int64_t e) { rows_fn(*per_row, b, e); });
        **y = cpu::SumRows(*per_row, alpha, rows);
      };
}

// Gives the arguments when it is called, where values have their addresses.
auto ArgsOfPairs(const LoopOp& op) {
  const SigmoidBceOp pairs(op.node());
  cpu::SigmoidBceArgs args = {};
  args.positives = pairs.positives;
  args.cols = Cols(pairs.z);
  args.block_rows = Rows(pairs.z) / Rows(pairs.weights);
  return [args, z = op.At(pairs.z), mask = op.At(pairs.mask),
          weights = op.At(pairs.weights), labels = op.At(pairs.labels)] {
    cpu::SigmoidBceArgs now = args;
    now.z = *z;
    now.mask = *mask;
    now.weights = *weights;
    now.labels = labels == nullptr ? nullptr : *labels;
    return now;
  };
}

LoopOp::Call LossGradOfOneModel(const LoopOp& op) {
  const LossGradOp grad(op.node());
  const int64_t rows = Rows(grad.logits), cols = Cols(grad.logits);
  const bool update = grad.attrs.bias == BiasGrad::kUpdate;
  const bool mse = grad.attrs.loss == Loss::kMse;
  const int64_t mean = mse ? BatchElements(op.node()) : BatchRows(op.node());
  const float loss_alpha = 1.0f / mean;
  const float grad_alpha = (mse ? 2.0f : 1.0f) / mean;
  const auto rows_fn = mse ? cpu::MseGradRows : cpu::SoftmaxXentGradRows;
  return
      [=, grain = RowGrain(cols), threads = op.threads(),
       logits = op.At(grad.logits), labels = op.At<int32_t>(grad.labels),
       indices = op.At<int32_t>(grad.indices), lr = op.At(grad.lr),
       bias = op.At(grad.bias), loss = op.Out(LossGradOp::kLoss),
       dlogits = op.Out(LossGradOp::kDlogits),
       correct = op.Out(LossGradOp::kCorrect),
       db = grad.attrs.bias == BiasGrad::kNone ? nullptr
                                               : op.Out(LossGradOp::kBiasGrad),
       per_row = op.Scratch(2 * rows * sizeof(float))] {
        const float alpha = lr == nullptr ? grad_alpha : -**lr * grad_alpha;
        float* const row_loss = *per_row;
        float* const row_correct = *per_row + rows;
        ParallelFor(threads, rows, grain, [&](int64_t b, int64_t e) {
          rows_fn(*logits, *labels, indices == nullptr ? nullptr : *indices,
                  alpha, *dlogits, row_loss, row_correct, cols, b, e);
        });
        **loss = cpu::SumRows(row_loss, loss_alpha, rows);
        **correct = cpu::SumRows(row_correct, 1.0f, rows);
        if (db == nullptr) return;
        if (update && *bias != *db) {
          std::memcpy(*db, *bias, cols * sizeof(float));
        }
        cpu::ReduceRows(*dlogits, *db, update, rows, cols, 0, cols);
      };
}

// Cross-entropy of few columns: the models side by side in a vector.
LoopOp::Call XentGradOfModels(const LoopOp& op) {
  const LossGradOp grad(op.node());
  const std::vector<int64_t>& dims = grad.logits.type().dims;
  cpu::InterleavedXentGradArgs args = {};
  args.rows = dims[0];
  args.cols = dims[1];
  args.models = op.models();
  args.loss_alpha = 1.0f / BatchRows(op.node());
  return
      [=, threads = op.threads(), logits = op.At(grad.logits),
       labels = op.At<int32_t>(grad.labels),
       indices = op.At<int32_t>(grad.indices), lr = op.At(grad.lr),
       bias = op.At(grad.bias), loss = op.Out(LossGradOp::kLoss),
       dlogits = op.Out(LossGradOp::kDlogits),
       correct = op.Out(LossGradOp::kCorrect),
       db = grad.attrs.bias == BiasGrad::kNone ? nullptr
                                               : op.Out(LossGradOp::kBiasGrad),
       alpha = op.Scratch(args.models * sizeof(float))]() mutable {
        args.logits = *logits;
        args.labels = *labels;
        args.indices = indices == nullptr ? nullptr : *indices;
        args.dlogits = *dlogits;
        args.loss = *loss;
        args.correct = *correct;
        args.alpha = *alpha;
        args.db = db == nullptr ? nullptr : *db;
        args.bias = bias == nullptr ? nullptr : *bias;
        for (int64_t k = 0; k < args.models; ++k) {
          (*alpha)[k] =
              lr == nullptr ? args.loss_alpha : -(*lr)[k] * args.loss_alpha;
        }
        ParallelFor(threads, args.models, kLineFloats,
                    [&](int64_t begin, int64_t end) {
                      cpu::InterleavedXentGrad(args, begin, end);
                    });
      };
}

}  // namespace

Implementations LowerSoftmax(const LoopOp& op) {
  return op.Loop([op] {
    return op.ByRows(op.out(), [x = op.In(0), y = op.Out(),
                                cols = Cols(op.out())](int64_t b, int64_t e) {
      cpu::Softmax(*x, *y, cols, b, e);
    });
  });
}

Implementations LowerSoftmaxGrad(const LoopOp& op) {
  return op.Loop([op] {
    return op.ByRows(op.out(), [y = op.In(0), dy = op.In(1), dx = op.Out(),
                                cols = Cols(op.out())](int64_t b, int64_t e) {
      cpu::SoftmaxGrad(*y, *dy, *dx, cols, b, e);
    });
  });
}

Implementations LowerNllLoss(const LoopOp& op) {
  return op.Loop([op] {
    return SumOverRows(op, 1.0f / BatchRows(op.node()),
                       [logits = op.In(0), labels = op.In<int32_t>(1),
                        cols = Cols(op.node().operands[0])](
                           float* per_row, int64_t b, int64_t e) {
                         cpu::NllRows(*logits, *labels, per_row, cols, b, e);
                       });
  });
}

Implementations LowerMinusOneHot(const LoopOp& op) {
  return op.Loop([op] {
    return op.ByRows(op.out(),
                     [p = op.In(0), labels = op.In<int32_t>(1), y = op.Out(),
                      cols = Cols(op.out())](int64_t b, int64_t e) {
                       cpu::MinusOneHot(*p, *labels, *y, cols, b, e);
                     });
  });
}

Implementations LowerMseLoss(const LoopOp& op) {
  return op.Loop([op] {
    return SumOverRows(
        op, 1.0f / BatchElements(op.node()),
        [y = op.In(0), t = op.In(1), cols = Cols(op.node().operands[0])](
            float* per_row, int64_t b, int64_t e) {
          cpu::MseRows(*y, *t, per_row, cols, b, e);
        });
  });
}

// A target that all models share does not lie beside their outputs.
Implementations LowerMseGrad(const LoopOp& op) {
  if (op.models() > 1 &&
      op.node().operands[0].type() != op.node().operands[1].type()) {
    return OneModelAtATime(op);
  }
  return op.Loop([op] {
    return op.Elementwise(
        [y = op.In(0), t = op.In(1), dy = op.Out(),
         alpha = 2.0f / BatchElements(op.node())](int64_t b, int64_t n) {
          cpu::MseGrad(alpha, *y + b, *t + b, *dy + b, n);
        });
  });
}

Implementations LowerCountCorrect(const LoopOp& op) {
  return op.Loop([op] {
    return SumOverRows(op, 1.0f,
                       [logits = op.In(0), labels = op.In<int32_t>(1),
                        cols = Cols(op.node().operands[0])](
                           float* per_row, int64_t b, int64_t e) {
                         cpu::CorrectRows(*logits, *labels, per_row, cols, b,
                                          e);
                       });
  });
}

Implementations LowerSigmoidBce(const LoopOp& op) {
  return op.Loop([op] {
    return SumOverRows(
        op, 1.0f,
        [pairs = ArgsOfPairs(op)](float* per_row, int64_t begin, int64_t end) {
          cpu::SigmoidBceRows(pairs(), per_row, begin, end);
        });
  });
}

Implementations LowerSigmoidBceGrad(const LoopOp& op) {
  return op.Loop([op] {
    return op.ByRows(
        op.node().operands[0],
        [pairs = ArgsOfPairs(op), dz = op.Out()](int64_t begin, int64_t end) {
          cpu::SigmoidBceGradRows(pairs(), *dz, begin, end);
        });
  });
}

Implementations LowerLossGrad(const LoopOp& op) {
  if (op.models() <= 1) {
    return op.Loop([op] { return LossGradOfOneModel(op); });
  }
  const LossGradOp grad(op.node());
  if (grad.attrs.loss != Loss::kSoftmaxXent ||
      grad.logits.type().dims[1] > cpu::kInterleavedCols) {
    return OneModelAtATime(op);
  }
  return op.Loop([op] { return XentGradOfModels(op); });
}

}  // namespace onestep::loops
