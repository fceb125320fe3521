// SPDX-License-Identifier: Apache-2.0
// What the lowerings to our own loops share: the node's types and addresses,
// and loops over threads.
#ifndef ONESTEP_COMPILER_LOWER_LOOPS_LOOP_LOWERING_H_
#define ONESTEP_COMPILER_LOWER_LOOPS_LOOP_LOWERING_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/lower/lower.h"
#include "kernels/cpu/activation.h"
#include "runtime/cpu/parallel.h"

namespace onestep {

// A range worth waking a thread for: a fork and a join cost 1 to 2 us, in
// which one core streams about this many floats from its cache.
inline constexpr int64_t kGrainElements = 16384;
// Likewise for matmul, in FLOPs.
inline constexpr double kGrainFlops = 262144;

inline constexpr int64_t kLineFloats = 16;  // of a cache line

inline int64_t RowGrain(int64_t cols) {
  return std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, cols));
}

// The type with its models, which are innermost in memory, as columns: what a
// loop over elements or columns sees.
inline TensorType ModelsAsColumns(TensorType type) {
  if (type.models == 0) return type;
  if (type.dims.empty()) type.dims.push_back(1);
  type.dims.back() *= type.models;
  type.models = 0;
  return type;
}

class LoopLowering {
 public:
  LoopLowering(const LowerContext& context, Node& node)
      : context_(context), node_(node), threads_(context.threads) {
    for (const Value& v : node.operands) {
      in_.push_back(ModelsAsColumns(v.type()));
    }
    for (const TensorType& t : node.types) out_.push_back(ModelsAsColumns(t));
  }

 protected:
  using Call = Chain::Call;

  template <typename T = float>
  T* const* In(int i) const {
    return context_.Address<T>(node_.operands[i]);
  }
  float* const* Out(int i = 0) const {
    return context_.Address<float>(node_.result(i));
  }
  float* const* Scratch() const {
    return context_.chain.address<float>(Chain::kScratch);
  }
  static int64_t Cols(const TensorType& t) {
    return t.rank() == 0 ? 1 : t.dims.back();
  }
  static int64_t Rows(const TensorType& t) {
    return t.num_elements() / Cols(t);
  }
  // Of the node; 1 when it has no model axis.
  int64_t models() const { return std::max<int64_t>(1, node_.models()); }

  // fn(begin, count) over the elements of the first result.
  template <typename Fn>
  Call Elementwise(Fn fn) const {
    return [fn, n = out_[0].num_elements(), threads = threads_] {
      ParallelFor(threads, n, kGrainElements,
                  [&](int64_t b, int64_t e) { fn(b, e - b); });
    };
  }

  // fn(begin, end) over the rows of `type`.
  template <typename Fn>
  Call ByRows(const TensorType& type, Fn fn) const {
    return [fn, rows = Rows(type), grain = RowGrain(Cols(type)),
            threads = threads_] { ParallelFor(threads, rows, grain, fn); };
  }

  // fn(begin, end) over the columns of `type`, which are whole cache lines.
  template <typename Fn>
  Call ByCols(const TensorType& type, Fn fn) const {
    return ByCols(Rows(type), Cols(type), fn);
  }
  // Likewise, where a column costs as much as `work` elements.
  template <typename Fn>
  Call ByCols(int64_t work, int64_t cols, Fn fn) const {
    const int64_t lines =
        kGrainElements / std::max<int64_t>(1, work) / kLineFloats;
    return [fn, cols, grain = std::max<int64_t>(1, lines) * kLineFloats,
            threads = threads_] { ParallelFor(threads, cols, grain, fn); };
  }

  const LowerContext& context_;
  Node& node_;
  const int threads_;
  std::vector<TensorType> in_, out_;  // with models as columns
};

// The updates, of one model or of many.
Chain::Call LowerUpdate(const LowerContext& context, Node& node);

// Gathers of rows, scatter_add, block_matmul, sigmoid_bce and its gradient.
Chain::Call LowerEmbedding(const LowerContext& context, Node& node);
// sgns_window, hs_window and cbow_window, of one model.
absl::StatusOr<LoweredStep> LowerWindow(const LowerContext& context,
                                        Node& node);

// Whether a node of many models is more than the loop of one model over
// further elements or columns.
bool NeedsModelLoop(const Node& node);
// The loop of such a node.
absl::StatusOr<Chain::Call> LowerModels(const LowerContext& context,
                                        Node& node);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_LOOPS_LOOP_LOWERING_H_
