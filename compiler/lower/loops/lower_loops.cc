// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/lower/loops/loop_lowering.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/sparse.h"
#include "kernels/probe.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

std::optional<NextRows> NextOf(const LowerContext& context) {
  if (context.next_rows == nullptr) return std::nullopt;
  CHECK(context.threads == 1);  // the loops share no prefetch
  return *context.next_rows;
}

cpu::RowPrefetch PrefetchOf(const std::optional<NextRows>& next) {
  if (!next || *next->indices == nullptr) return {nullptr, nullptr, 0, 0};
  return {*next->table, *next->indices + next->first, next->count,
          next->row_bytes};
}

bool IsWindow(OpKind kind) {
  return kind == OpKind::kSgnsWindow || kind == OpKind::kHsWindow ||
         kind == OpKind::kCbowWindow;
}

class Lowering : public LoopLowering {
 public:
  using LoopLowering::LoopLowering;

  absl::StatusOr<LoweredStep> Run() {
    LoweredStep step;
    if (NeedsModelLoop(node_)) {
      ASSIGN_OR_RETURN(step.call, LowerModels(context_, node_));
    } else if (IsWindow(node_.kind)) {
      return LowerWindow(context_, node_);
    } else {
      step.call = Make();
    }
    step.implementation = absl::StrCat("cpu ", CpuIsa());
    return step;
  }

 private:
  Call Make() {
    switch (node_.kind) {
      case OpKind::kInput:
      case OpKind::kParam:
      case OpKind::kConstant:
      case OpKind::kExchange:  // LowerToChain refuses it
      case OpKind::kBroadcastModels:
      case OpKind::kSgnsWindow:  // LowerWindow's
      case OpKind::kHsWindow:
      case OpKind::kCbowWindow:
        break;
      case OpKind::kSlice:
        return Slice();
      case OpKind::kCast:
        return Cast();
      case OpKind::kOneHot:
      case OpKind::kBroadcastRows:
      case OpKind::kReduceRows:
        return RowOps();
      case OpKind::kScale:
      case OpKind::kMulScalar:
      case OpKind::kAdd:
      case OpKind::kMul:
      case OpKind::kAddBias:
        return Arithmetic();
      case OpKind::kMatMul:
        return MatMul();
      case OpKind::kGatherRows:
      case OpKind::kGatherConvert:
      case OpKind::kScatterAdd:
      case OpKind::kBlockMatMul:
      case OpKind::kSigmoidBce:
      case OpKind::kSigmoidBceGrad:
        return LowerEmbedding(context_, node_);
      case OpKind::kRelu:
      case OpKind::kTanh:
      case OpKind::kSigmoid:
      case OpKind::kGelu:
        return Elementwise([act = ActivationOf(node_.kind), x = In(0),
                            y = Out()](int64_t b, int64_t n) {
          cpu::ActivationForward(act, *x + b, *y + b, n);
        });
      case OpKind::kReluGrad:
      case OpKind::kTanhGrad:
      case OpKind::kSigmoidGrad:
      case OpKind::kGeluGrad:
        return Elementwise([act = ActivationOfGrad(node_.kind), y = In(0),
                            dy = In(1), dx = Out()](int64_t b, int64_t n) {
          cpu::ActivationBackward(act, *y + b, *dy + b, *dx + b, n);
        });
      case OpKind::kActivationGrad:
        return ActivationGrad();
      case OpKind::kSoftmax:
      case OpKind::kSoftmaxGrad:
      case OpKind::kMinusOneHot:
      case OpKind::kMseGrad:
        return LossParts();
      case OpKind::kNllLoss:
      case OpKind::kMseLoss:
      case OpKind::kCountCorrect:
        return RowSums();
      case OpKind::kLossGrad:
        return LossGrad();
      case OpKind::kSgdUpdate:
      case OpKind::kMomentumUpdate:
      case OpKind::kAdamUpdate:
        return LowerUpdate(context_, node_);
      case OpKind::kGatherSparse:
        return GatherSparse();
      case OpKind::kSparseMatMul:
        return SparseMatMul();
      case OpKind::kSparseOuter:
        return SparseOuter();
    }
    CHECK(false);
  }

  Call Slice() {
    const SliceAttrs& attrs = node_.as<SliceAttrs>();
    const TensorType &x_type = in_[0], &y_type = out_[0];
    const int64_t rows = y_type.dims[0];
    const int64_t row_bytes = y_type.bytes() / rows;
    const int64_t x_row_bytes = x_type.bytes() / x_type.dims[0];
    const bool cuts_columns = attrs.axis + 1 == x_type.rank();
    const int64_t begin_bytes =
        attrs.begin *
        (cuts_columns ? models() * DTypeBytes(x_type.dtype) : x_row_bytes);
    return [=, threads = threads_, grain = RowGrain(row_bytes / 4),
            x = In<char>(0), y = Out()] {
      ParallelFor(threads, rows, grain, [&](int64_t b, int64_t e) {
        cpu::CopyRows(*x + begin_bytes, x_row_bytes, *y, row_bytes, b, e);
      });
    };
  }

  Call Cast() {
    switch (in_[0].dtype) {
      case DType::kU8:
        return Elementwise(
            [x = In<uint8_t>(0), y = Out()](int64_t b, int64_t n) {
              cpu::CastU8(*x + b, *y + b, n);
            });
      case DType::kI32:
        return Elementwise(
            [x = In<int32_t>(0), y = Out()](int64_t b, int64_t n) {
              cpu::CastI32(*x + b, *y + b, n);
            });
      case DType::kF32:
        return Elementwise([x = In(0), y = Out()](int64_t b, int64_t n) {
          if (*x != *y) std::memcpy(*y + b, *x + b, n * sizeof(float));
        });
    }
    CHECK(false);
  }

  Call RowOps() {
    if (node_.kind == OpKind::kReduceRows) {
      return ByCols(in_[0], [x = In(0), y = Out(), rows = Rows(in_[0]),
                             cols = Cols(in_[0])](int64_t b, int64_t e) {
        cpu::ReduceRows(*x, *y, false, rows, cols, b, e);
      });
    }
    const int64_t cols = Cols(out_[0]);
    if (node_.kind == OpKind::kOneHot) {
      return ByRows(out_[0], [=, labels = In<int32_t>(0), y = Out()](
                                 int64_t b, int64_t e) {
        cpu::OneHot(*labels + b, *y + b * cols, e - b, cols);
      });
    }
    return ByRows(out_[0], [=, x = In(0), y = Out()](int64_t b, int64_t e) {
      cpu::BroadcastRows(*x, *y + b * cols, e - b, cols);
    });
  }

  Call Arithmetic() {
    float* const* x = In(0);
    float* const* y = Out();
    float* const* z = node_.operands.size() > 1 ? In(1) : nullptr;
    switch (node_.kind) {
      case OpKind::kScale:
        return Elementwise(
            [=, alpha = node_.as<ScaleAttrs>().alpha](int64_t b, int64_t n) {
              cpu::Scale(alpha, *x + b, *y + b, n);
            });
      case OpKind::kMulScalar:
        return Elementwise(
            [=, alpha = node_.as<ScaleAttrs>().alpha](int64_t b, int64_t n) {
              cpu::Scale(alpha * **z, *x + b, *y + b, n);
            });
      case OpKind::kAdd:
        return Elementwise(
            [=](int64_t b, int64_t n) { cpu::Add(*x + b, *z + b, *y + b, n); });
      case OpKind::kMul:
        return Elementwise(
            [=](int64_t b, int64_t n) { cpu::Mul(*x + b, *z + b, *y + b, n); });
      case OpKind::kAddBias:
        return ByRows(out_[0], [=, cols = Cols(out_[0])](int64_t b, int64_t e) {
          cpu::AddBias(*x + b * cols, *z, *y + b * cols, e - b, cols);
        });
      default:
        CHECK(false);
    }
  }

  Call MatMul() {
    const MatMulAttrs& attrs = node_.as<MatMulAttrs>();
    const std::vector<int64_t>& a_dims = in_[0].dims;
    const std::vector<int64_t>& b_dims = in_[1].dims;
    cpu::MatMulArgs args = {};
    args.m = out_[0].dims[0];
    args.n = out_[0].dims[1];
    args.k = a_dims[attrs.trans_a ? 0 : 1];
    args.a_row = attrs.trans_a ? 1 : a_dims[1];
    args.a_col = attrs.trans_a ? a_dims[1] : 1;
    args.ldb = args.ldc = args.n;
    args.accumulate = attrs.accumulate;
    args.act = attrs.activation;
    if (attrs.trans_b) {
      context_.chain.RequestScratch(args.k * args.n * sizeof(float));
    }
    const int last = static_cast<int>(node_.operands.size()) - 1;
    const bool by_cols = SplitsColumns(args, threads_);
    const int64_t grain = MatMulGrain(args, by_cols);
    return [args, by_cols, grain, threads = threads_, a = In(0), b = In(1),
            y = Out(), bias = attrs.bias ? In(2) : nullptr,
            c = attrs.accumulate ? In(last) : nullptr,
            packed = attrs.trans_b ? Scratch() : nullptr, b_rows = b_dims[0],
            b_cols = b_dims[1], next = NextOf(context_)]() mutable {
      cpu::RowPrefetch prefetch = PrefetchOf(next);
      if (next) args.prefetch = &prefetch;
      args.a = *a;
      args.b = *b;
      args.c = *y;
      args.bias = bias == nullptr ? nullptr : *bias;
      if (packed != nullptr) {
        cpu::Transpose(*b, *packed, b_rows, b_cols);
        args.b = *packed;
      }
      if (c != nullptr && *c != *y) {
        std::memcpy(*y, *c, args.m * args.n * sizeof(float));
      }
      if (by_cols) {
        ParallelFor(threads, args.n, grain, [&](int64_t begin, int64_t end) {
          cpu::MatMulArgs part = args;
          part.n = end - begin;
          part.b += begin;
          part.c += begin;
          if (part.bias != nullptr) part.bias += begin;
          cpu::MatMul(part, 0, part.m);
        });
        return;
      }
      ParallelFor(threads, args.m, grain, [&](int64_t begin, int64_t end) {
        cpu::MatMul(args, begin, end);
      });
    };
  }

  // Rows are split where the batch is wider than the layer, else columns: then
  // a thread's slice of a weight stays in its own cache from the update to the
  // next forward, which splits alike.
  static bool SplitsColumns(const cpu::MatMulArgs& args, int threads) {
    const int64_t batch = args.accumulate ? args.k : args.m;
    return batch < args.n && args.n >= 2 * kLineFloats * threads;
  }

  // Rows or columns of a range that is worth a thread.
  static int64_t MatMulGrain(const cpu::MatMulArgs& args, bool by_cols) {
    const double flops = 2.0 * (by_cols ? args.m : args.n) * args.k;
    const int64_t count =
        static_cast<int64_t>(kGrainFlops / std::max(1.0, flops)) + 1;
    const int64_t unit = by_cols ? kLineFloats : cpu::MatMulRowGrain();
    return (count + unit - 1) / unit * unit;
  }

  Call ActivationGrad() {
    const ActivationGradAttrs& attrs = node_.as<ActivationGradAttrs>();
    const TensorType& type = out_[0];
    const bool update = attrs.bias == BiasGrad::kUpdate;
    return ByCols(type, [act = attrs.activation, update, y = In(0), dy = In(1),
                         dx = Out(), b = update ? In(2) : nullptr,
                         db = attrs.bias == BiasGrad::kNone ? nullptr : Out(1),
                         rows = Rows(type),
                         cols = Cols(type)](int64_t begin, int64_t end) {
      if (update && *b != *db) {
        std::memcpy(*db + begin, *b + begin, (end - begin) * sizeof(float));
      }
      cpu::ActivationGradBias(act, *y, *dy, *dx, db == nullptr ? nullptr : *db,
                              update, rows, cols, begin, end);
    });
  }

  Call LossParts() {
    const int64_t cols = Cols(out_[0]);
    float* const* x = In(0);
    float* const* y = Out();
    switch (node_.kind) {
      case OpKind::kSoftmax:
        return ByRows(out_[0], [=](int64_t b, int64_t e) {
          cpu::Softmax(*x, *y, cols, b, e);
        });
      case OpKind::kSoftmaxGrad:
        return ByRows(out_[0], [=, dy = In(1)](int64_t b, int64_t e) {
          cpu::SoftmaxGrad(*x, *dy, *y, cols, b, e);
        });
      case OpKind::kMinusOneHot:
        return ByRows(out_[0],
                      [=, labels = In<int32_t>(1)](int64_t b, int64_t e) {
                        cpu::MinusOneHot(*x, *labels, *y, cols, b, e);
                      });
      case OpKind::kMseGrad:
        return Elementwise([=, t = In(1), alpha = 2.0f / BatchElements(node_)](
                               int64_t b, int64_t n) {
          cpu::MseGrad(alpha, *x + b, *t + b, *y + b, n);
        });
      default:
        CHECK(false);
    }
  }

  // A value per row in the scratch, then their sum.
  Call RowSums() {
    const int64_t rows = Rows(in_[0]), cols = Cols(in_[0]);
    const int64_t grain = RowGrain(cols);
    context_.chain.RequestScratch(rows * sizeof(float));
    float alpha = 1;
    if (node_.kind == OpKind::kNllLoss) alpha = 1.0f / BatchRows(node_);
    if (node_.kind == OpKind::kMseLoss) alpha = 1.0f / BatchElements(node_);
    return [=, kind = node_.kind, threads = threads_, x = In(0), t = In(1),
            labels = In<int32_t>(1), y = Out(), per_row = Scratch()] {
      ParallelFor(threads, rows, grain, [&](int64_t b, int64_t e) {
        if (kind == OpKind::kNllLoss) {
          cpu::NllRows(*x, *labels, *per_row, cols, b, e);
        } else if (kind == OpKind::kMseLoss) {
          cpu::MseRows(*x, *t, *per_row, cols, b, e);
        } else {
          cpu::CorrectRows(*x, *labels, *per_row, cols, b, e);
        }
      });
      **y = cpu::SumRows(*per_row, alpha, rows);
    };
  }

  Call LossGrad() {
    const LossGradAttrs& attrs = node_.as<LossGradAttrs>();
    const int64_t rows = Rows(in_[0]), cols = Cols(in_[0]);
    context_.chain.RequestScratch(2 * rows * sizeof(float));
    int next = 2;
    int32_t* const* indices = attrs.gather ? In<int32_t>(next++) : nullptr;
    float* const* lr = attrs.scaled ? In(next++) : nullptr;
    const bool update = attrs.bias == BiasGrad::kUpdate;
    float* const* bias = update ? In(next++) : nullptr;
    float* const* db = attrs.bias == BiasGrad::kNone ? nullptr : Out(3);
    const bool mse = attrs.loss == Loss::kMse;
    const int64_t mean = mse ? BatchElements(node_) : BatchRows(node_);
    const float loss_alpha = 1.0f / mean;
    const float grad_alpha = (mse ? 2.0f : 1.0f) / mean;
    const auto rows_fn = mse ? cpu::MseGradRows : cpu::SoftmaxXentGradRows;
    return [=, grain = RowGrain(cols), threads = threads_, logits = In(0),
            labels = In<int32_t>(1), loss = Out(0), dlogits = Out(1),
            correct = Out(2), per_row = Scratch()] {
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

  // fn(begin, end) over the rows of a sparse batch, which go in groups.
  template <typename Fn>
  Call BySparseRows(int64_t cols, Fn fn) const {
    const int64_t groups = RowGrain(cols) / cpu::kSparseRows;
    return [fn, rows = out_[0].dims[0],
            grain = std::max<int64_t>(1, groups) * cpu::kSparseRows,
            threads = threads_] { ParallelFor(threads, rows, grain, fn); };
  }

  Call GatherSparse() {
    const int64_t cols = in_[0].dims[1];
    CHECK(Cols(out_[0]) == cpu::SparseWidth(cols));
    return BySparseRows(
        cols,
        [cols, alpha = node_.as<GatherSparseAttrs>().alpha,
         table = In<uint8_t>(0), indices = In<int32_t>(1),
         x = context_.Address<int32_t>(node_.result())](int64_t b, int64_t e) {
          cpu::GatherSparse(*table, *indices, alpha, *x, cols, b, e);
        });
  }

  // Splits as the dense product does, for the same reason.
  Call SparseMatMul() {
    const auto& attrs = node_.as<SparseMatMulAttrs>();
    const TensorType& type = out_[0];
    const int64_t rows = Rows(type), cols = Cols(type);
    cpu::SparseMatMulArgs args = {};
    args.k = Rows(in_[1]);
    args.ldw = args.ldy = cols;
    args.act = attrs.activation;
    const auto run = [args, rows, cols, x = In<int32_t>(0), w = In(1),
                      bias = attrs.bias ? In(2) : nullptr, y = Out(),
                      next = NextOf(context_)](int64_t row, int64_t row_end,
                                               int64_t col, int64_t col_end) {
      cpu::RowPrefetch prefetch = PrefetchOf(next);
      cpu::SparseMatMulArgs part = args;
      if (next) part.prefetch = &prefetch;
      part.x = *x;
      part.w = *w + col;
      part.y = *y + col;
      part.n = col_end - col;
      part.bias = bias == nullptr ? nullptr : *bias + col;
      cpu::SparseMatMul(part, row, row_end);
    };
    if (rows < cols && cols >= 2 * kLineFloats * threads_) {
      return ByCols(in_[0].num_elements(), cols,
                    [run, rows](int64_t b, int64_t e) { run(0, rows, b, e); });
    }
    return BySparseRows(
        cols, [run, cols](int64_t b, int64_t e) { run(b, e, 0, cols); });
  }

  // By columns: each needs the whole batch, and no two touch the same sums.
  Call SparseOuter() {
    const auto& attrs = node_.as<SparseOuterAttrs>();
    cpu::SparseOuterArgs args = {};
    args.rows = Rows(in_[0]);
    args.k = attrs.rows;
    args.lddz = args.lddw = Cols(out_[0]);
    return ByCols(in_[0].num_elements(), args.lddw,
                  [args, x = In<int32_t>(0), dz = In(1),
                   c = attrs.accumulate ? In(2) : nullptr, dw = Out(),
                   next = NextOf(context_)](int64_t begin, int64_t end) {
                    cpu::RowPrefetch prefetch = PrefetchOf(next);
                    cpu::SparseOuterArgs part = args;
                    if (next) part.prefetch = &prefetch;
                    part.x = *x;
                    part.dz = *dz + begin;
                    part.dw = *dw + begin;
                    part.n = end - begin;
                    const size_t bytes = part.n * sizeof(float);
                    const bool in_place = c != nullptr && *c == *dw;
                    for (int64_t r = 0; r < part.k && !in_place; ++r) {
                      float* row = part.dw + r * part.lddw;
                      if (c == nullptr) {
                        std::memset(row, 0, bytes);
                      } else {
                        std::memcpy(row, *c + begin + r * part.lddw, bytes);
                      }
                    }
                    cpu::SparseOuter(part);
                  });
  }
};

}  // namespace

absl::StatusOr<LoweredStep> LowerToLoop(const LowerContext& context,
                                        Node& node) {
  return Lowering(context, node).Run();
}

}  // namespace onestep
