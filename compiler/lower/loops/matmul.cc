// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/matmul.h"

#include <cstring>

#include "absl/status/status.h"
#include "compiler/lower/loops/loop_op.h"
#include "kernels/cpu/micro_gemm.h"
#include "kernels/cpu/models/interleaved.h"

namespace onestep::loops {
namespace {

// Rows are split where the batch is wider than the layer, else columns: then
// a thread's slice of a weight stays in its own cache from the update to the
// next forward, which splits alike.
bool SplitsColumns(const cpu::MatMulArgs& args, int threads) {
  const int64_t batch = args.accumulate ? args.k : args.m;
  return batch < args.n && args.n >= 2 * kLineFloats * threads;
}

// Rows or columns of a range that is worth a thread.
int64_t MatMulGrain(const cpu::MatMulArgs& args, bool by_cols) {
  const double flops = 2.0 * (by_cols ? args.m : args.n) * args.k;
  const int64_t count =
      static_cast<int64_t>(kGrainFlops / std::max(1.0, flops)) + 1;
  const int64_t unit = by_cols ? kLineFloats : cpu::MatMulRowGrain();
  return (count + unit - 1) / unit * unit;
}

// Also of many models that share `a`: their columns are then further columns of
// b and c.
LoopOp::Call MatMulLoop(const LoopOp& op) {
  const MatMulOp matmul(op.node());
  cpu::MatMulArgs args = {};
  args.m = matmul.m;
  args.n = matmul.n * op.models();
  args.k = matmul.k;
  args.a_row = matmul.attrs.trans_a ? 1 : args.k;
  args.a_col = matmul.attrs.trans_a ? args.m : 1;
  args.ldb = args.ldc = args.n;
  args.accumulate = matmul.attrs.accumulate;
  args.act = matmul.attrs.activation;
  const bool packs = matmul.attrs.trans_b;
  const bool by_cols = SplitsColumns(args, op.threads());
  return
      [args, by_cols, grain = MatMulGrain(args, by_cols),
       threads = op.threads(), a = op.At(matmul.a), b = op.At(matmul.b),
       y = op.Out(), bias = op.At(matmul.bias), c = op.At(matmul.c),
       packed = packs ? op.Scratch(args.k * args.n * sizeof(float)) : nullptr,
       next = op.next_rows()]() mutable {
        cpu::RowPrefetch prefetch = PrefetchOf(next);
        if (next) args.prefetch = &prefetch;
        args.a = *a;
        args.b = *b;
        args.c = *y;
        args.bias = bias == nullptr ? nullptr : *bias;
        if (packed != nullptr) {
          cpu::Transpose(*b, *packed, args.n, args.k);
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

// Of many models, each with its own `a`.
LoopOp::Call MatMulOfModels(const LoopOp& op) {
  const MatMulOp matmul(op.node());
  cpu::InterleavedMatMulArgs args = {};
  args.models = op.models();
  args.m = matmul.m;
  args.n = matmul.n;
  args.k = matmul.k;
  args.a_row = matmul.attrs.trans_a ? 1 : args.k;
  args.a_col = matmul.attrs.trans_a ? args.m : 1;
  args.accumulate = matmul.attrs.accumulate;
  args.act = matmul.attrs.activation;
  const bool trans_b = matmul.attrs.trans_b;
  const bool packs = trans_b && cpu::ModelsShareVector(args.models);
  const bool strided = trans_b && !packs;
  args.b_row = strided ? 1 : args.n;
  args.b_col = strided ? args.k : 1;
  const double row_flops = 2.0 * args.n * args.k * args.models;
  return [args, grain = static_cast<int64_t>(kGrainFlops / row_flops) + 1,
          threads = op.threads(), a = op.At(matmul.a), b = op.At(matmul.b),
          y = op.Out(), bias = op.At(matmul.bias), c = op.At(matmul.c),
          packed =
              packs ? op.Scratch(matmul.b.type().bytes()) : nullptr]() mutable {
    args.a = *a;
    args.b = *b;
    args.c = *y;
    args.bias = bias == nullptr ? nullptr : *bias;
    if (packed != nullptr) {
      cpu::InterleavedTranspose(*b, *packed, args.n, args.k, args.models);
      args.b = *packed;
    }
    if (c != nullptr && *c != *y) {
      std::memcpy(*y, *c, args.m * args.n * args.models * sizeof(float));
    }
    ParallelFor(threads, args.m, grain, [&](int64_t begin, int64_t end) {
      cpu::InterleavedMatMul(args, begin, end);
    });
  };
}

// A kernel of libxsmm, made for the shape, for the plain and the accumulating
// matmul. It is one thread's.
absl::StatusOr<LoweredStep> MakeXsmm(const LoopOp& op) {
  const MatMulOp matmul(op.node());
  const TensorType& b_type = matmul.b.type();
  const cpu::MicroGemm kernel =
      cpu::MakeMicroGemm({.m = matmul.m,
                          .n = matmul.n,
                          .k = matmul.k,
                          .trans_a = matmul.attrs.trans_a,
                          .accumulate = matmul.attrs.accumulate});
  if (kernel == nullptr) {
    return absl::UnimplementedError("matmul on libxsmm: no kernel");
  }
  LoweredStep step;
  step.implementation = cpu::MicroGemmLibrary();
  step.call = [=, bytes = op.node().types[0].bytes(), b_rows = b_type.dims[0],
               b_cols = b_type.dims[1], a = op.At(matmul.a),
               b = op.At(matmul.b), y = op.Out(), c = op.At(matmul.c),
               packed = matmul.attrs.trans_b ? op.Scratch(b_type.bytes())
                                             : nullptr] {
    const float* right = *b;
    if (packed != nullptr) {
      cpu::Transpose(*b, *packed, b_rows, b_cols);
      right = *packed;
    }
    if (c != nullptr && *c != *y) std::memcpy(*y, *c, bytes);
    kernel(right, *a, *y);
  };
  return step;
}

}  // namespace

Implementations LowerMatMul(const LoopOp& op) {
  const MatMulOp matmul(op.node());
  if (op.models() > 1) {
    if (matmul.a.type().models > 0) {
      return op.Loop([op] { return MatMulOfModels(op); });
    }
    if (matmul.attrs.trans_b) return OneModelAtATime(op);
  }
  Implementations list = op.Loop([op] { return MatMulLoop(op); });
  const bool plain =
      !matmul.bias && matmul.attrs.activation == Activation::kNone;
  if (plain && op.node().models() == 0 && op.threads() == 1) {
    list.push_back({KernelSource::kXsmm, [op] { return MakeXsmm(op); }});
  }
  return list;
}

Implementations LowerBlockMatMul(const LoopOp& op) {
  return op.Loop([op] {
    const auto& attrs = op.attrs<BlockMatMulAttrs>();
    const TensorType& a_type = op.node().operands[0].type();
    const TensorType& b_type = op.node().operands[1].type();
    const TensorType& y_type = op.node().types[0];
    const int64_t blocks = attrs.blocks;
    cpu::MatMulArgs args = {};
    args.m = y_type.dims[0] / blocks;
    args.n = y_type.dims[1];
    args.k = attrs.trans_a ? a_type.dims[0] / blocks : a_type.dims[1];
    args.a_row = attrs.trans_a ? 1 : args.k;
    args.a_col = attrs.trans_a ? args.m : 1;
    args.ldb = args.ldc = args.n;
    // A row and a column lie alike.
    const bool packs = attrs.trans_b && args.n > 1 && args.k > 1;
    const double flops = 2.0 * args.m * args.n * args.k;
    return [args, blocks, threads = op.threads(), a = op.In(0), b = op.In(1),
            y = op.Out(), packed = packs ? op.Scratch(b_type.bytes()) : nullptr,
            grain = static_cast<int64_t>(kGrainFlops / flops) + 1] {
      ParallelFor(threads, blocks, grain, [&](int64_t begin, int64_t end) {
        cpu::MatMulArgs block = args;
        for (int64_t g = begin; g < end; ++g) {
          block.a = *a + g * args.m * args.k;
          block.b = *b + g * args.k * args.n;
          block.c = *y + g * args.m * args.n;
          if (packed != nullptr) {
            float* const block_b = *packed + g * args.k * args.n;
            cpu::Transpose(block.b, block_b, args.n, args.k);
            block.b = block_b;
          }
          cpu::MatMul(block, 0, args.m);
        }
      });
    };
  });
}

}  // namespace onestep::loops
