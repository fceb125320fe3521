// SPDX-License-Identifier: Apache-2.0
// The ops of rows of tables, one by one.
#include <cstring>

#include "compiler/lower/loops/loop_lowering.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/word2vec/sigmoid_bce.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

class EmbeddingLowering : public LoopLowering {
 public:
  using LoopLowering::LoopLowering;

  Call Run() {
    switch (node_.kind) {
      case OpKind::kGatherRows:
      case OpKind::kGatherConvert:
        return Gather();
      case OpKind::kScatterAdd:
        return ScatterAdd();
      case OpKind::kBlockMatMul:
        return BlockMatMul();
      case OpKind::kSigmoidBce:
        return SigmoidBce();
      case OpKind::kSigmoidBceGrad:
        return SigmoidBceGrad();
      default:
        CHECK(false);
    }
  }

 private:
  Call Gather() {
    uint8_t* const* table = In<uint8_t>(0);
    int32_t* const* indices = In<int32_t>(1);
    const int64_t cols = in_[0].rank() == 1 ? 1 : in_[0].dims[1];
    if (node_.kind == OpKind::kGatherConvert) {
      return ByRows(out_[0], [=, alpha = node_.as<ScaleAttrs>().alpha,
                              y = Out()](int64_t b, int64_t e) {
        cpu::GatherConvert(*table, *indices, alpha, *y, cols, b, e);
      });
    }
    const int64_t row_bytes = cols * DTypeBytes(in_[0].dtype);
    return [=, rows = in_[1].dims[0], grain = RowGrain(row_bytes / 4),
            threads = threads_, y = Out()] {
      ParallelFor(threads, rows, grain, [&](int64_t b, int64_t e) {
        cpu::GatherRows(*table, *indices, *y, row_bytes, b, e);
      });
    };
  }

  // By columns: rows may be named more than once.
  Call ScatterAdd() {
    const int64_t rows = in_[1].dims[0];
    const int64_t cols = in_[0].rank() == 1 ? 1 : in_[0].dims[1];
    const int64_t lines = kGrainElements / rows / kLineFloats;
    return [=, bytes = in_[0].bytes(), table = In(0), indices = In<int32_t>(1),
            x = In(2), y = Out(), threads = threads_,
            grain = std::max<int64_t>(1, lines) * kLineFloats] {
      if (*y != *table) std::memcpy(*y, *table, bytes);
      ParallelFor(threads, cols, grain, [&](int64_t begin, int64_t end) {
        cpu::ScatterAdd(*indices, *x, *y, rows, cols, begin, end);
      });
    };
  }

  Call BlockMatMul() {
    const auto& attrs = node_.as<BlockMatMulAttrs>();
    const int64_t blocks = attrs.blocks;
    const std::vector<int64_t>& a_dims = in_[0].dims;
    cpu::MatMulArgs args = {};
    args.m = out_[0].dims[0] / blocks;
    args.n = out_[0].dims[1];
    args.k = attrs.trans_a ? a_dims[0] / blocks : a_dims[1];
    args.a_row = attrs.trans_a ? 1 : args.k;
    args.a_col = attrs.trans_a ? args.m : 1;
    args.ldb = args.ldc = args.n;
    // A row and a column lie alike.
    const bool packs = attrs.trans_b && args.n > 1 && args.k > 1;
    if (packs) context_.chain.RequestScratch(in_[1].bytes());
    const double flops = 2.0 * args.m * args.n * args.k;
    return [args, blocks, threads = threads_, a = In(0), b = In(1), y = Out(),
            packed = packs ? Scratch() : nullptr,
            grain = static_cast<int64_t>(kGrainFlops / flops) + 1] {
      ParallelFor(threads, blocks, grain, [&](int64_t begin, int64_t end) {
        cpu::MatMulArgs block = args;
        for (int64_t g = begin; g < end; ++g) {
          block.a = *a + g * args.m * args.k;
          block.b = *b + g * args.k * args.n;
          block.c = *y + g * args.m * args.n;
          if (packed != nullptr) {
            float* const own = *packed + g * args.k * args.n;
            cpu::Transpose(block.b, own, args.n, args.k);
            block.b = own;
          }
          cpu::MatMul(block, 0, args.m);
        }
      });
    };
  }

  // Gives the arguments when it is called, where values have their addresses.
  auto Pairs() const {
    cpu::SigmoidBceArgs args = {};
    args.positives = node_.as<PositivesAttrs>().positives;
    args.cols = Cols(in_[0]);
    args.block_rows = Rows(in_[0]) / Rows(in_[2]);
    return [args, z = In(0), mask = In(1), weights = In(2),
            labels = in_.size() > 3 ? In(3) : nullptr] {
      cpu::SigmoidBceArgs now = args;
      now.z = *z;
      now.mask = *mask;
      now.weights = *weights;
      now.labels = labels == nullptr ? nullptr : *labels;
      return now;
    };
  }

  // A value per row in the scratch, then their sum.
  Call SigmoidBce() {
    const int64_t rows = Rows(in_[0]);
    context_.chain.RequestScratch(rows * sizeof(float));
    return [pairs = Pairs(), rows, grain = RowGrain(Cols(in_[0])),
            threads = threads_, loss = Out(), per_row = Scratch()] {
      ParallelFor(threads, rows, grain,
                  [&, args = pairs()](int64_t begin, int64_t end) {
                    cpu::SigmoidBceRows(args, *per_row, begin, end);
                  });
      **loss = cpu::SumRows(*per_row, 1.0f, rows);
    };
  }

  Call SigmoidBceGrad() {
    return [pairs = Pairs(), rows = Rows(in_[0]),
            grain = RowGrain(Cols(in_[0])), threads = threads_, dz = Out()] {
      ParallelFor(threads, rows, grain,
                  [&, args = pairs()](int64_t begin, int64_t end) {
                    cpu::SigmoidBceGradRows(args, *dz, begin, end);
                  });
    };
  }
};

}  // namespace

Chain::Call LowerEmbedding(const LowerContext& context, Node& node) {
  return EmbeddingLowering(context, node).Run();
}

}  // namespace onestep
