// SPDX-License-Identifier: Apache-2.0
// Lowering to our loops (kernels/cpu): a Lower<Kind> for every op whose row of
// ops.def names kLoops, in the file of its family.
#ifndef ONESTEP_COMPILER_LOWER_LOOPS_LOOP_OP_H_
#define ONESTEP_COMPILER_LOWER_LOOPS_LOOP_OP_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "compiler/lower/implementation.h"
#include "kernels/cpu/row_prefetch.h"
#include "runtime/cpu/parallel.h"

namespace onestep::loops {

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
TensorType ModelsAsColumns(TensorType type);
// Columns and rows of such a type; of a scalar one each.
int64_t Cols(Value value);
int64_t Rows(Value value);

// A node that becomes a loop: its addresses, and loops over threads. Cheap to
// copy; refers to the context and the node.
class LoopOp {
 public:
  using Call = Chain::Call;

  LoopOp(const LowerContext& context, Node& node)
      : context_(&context), node_(&node) {}

  Node& node() const { return *node_; }
  Chain& chain() const { return context_->chain; }
  const LowerContext& context() const { return *context_; }
  int threads() const { return context_->threads; }
  template <typename A>
  const A& attrs() const {
    return node_->as<A>();
  }

  // Where the address of a value is; null when there is no value.
  template <typename T = float>
  T* const* At(Value value) const {
    return context_->Address<T>(value);
  }
  template <typename T = float>
  T* const* In(int i) const {
    return At<T>(node_->operands[i]);
  }
  template <typename T = float>
  T* const* Out(int i = 0) const {
    return At<T>(node_->result(i));
  }
  Value out(int i = 0) const { return node_->result(i); }
  // Scratch memory of the step, of at least so many bytes.
  float* const* Scratch(int64_t bytes) const;
  // Of the node; 1 when it has no model axis.
  int64_t models() const { return std::max<int64_t>(1, node_->models()); }
  std::optional<NextRows> next_rows() const;

  // The loop that `make` builds, as the only implementation; `note` says more
  // of it.
  Implementations Loop(std::function<absl::StatusOr<Call>()> make,
                       const char* note = "") const;

  // fn(begin, count) over the elements of the first result.
  template <typename Fn>
  Call Elementwise(Fn fn) const {
    return [fn, n = ModelsAsColumns(node_->types[0]).num_elements(),
            threads = threads()] {
      ParallelFor(threads, n, kGrainElements,
                  [&](int64_t b, int64_t e) { fn(b, e - b); });
    };
  }

  // fn(begin, end) over `rows` rows, where one costs as much as `work`
  // elements.
  template <typename Fn>
  Call ByRows(int64_t rows, int64_t work, Fn fn) const {
    return [fn, rows, grain = RowGrain(work), threads = threads()] {
      ParallelFor(threads, rows, grain, fn);
    };
  }
  // Over those of `value`.
  template <typename Fn>
  Call ByRows(Value value, Fn fn) const {
    return ByRows(Rows(value), Cols(value), fn);
  }

  // fn(begin, end) over the columns, whole cache lines of them, where a column
  // costs as much as `work` elements.
  template <typename Fn>
  Call ByCols(int64_t work, int64_t cols, Fn fn) const {
    const int64_t lines =
        kGrainElements / std::max<int64_t>(1, work) / kLineFloats;
    return [fn, cols, grain = std::max<int64_t>(1, lines) * kLineFloats,
            threads = threads()] { ParallelFor(threads, cols, grain, fn); };
  }
  // Over those of `value`.
  template <typename Fn>
  Call ByCols(Value value, Fn fn) const {
    return ByCols(Rows(value), Cols(value), fn);
  }

 private:
  const LowerContext* context_;
  Node* node_;
};

// What a loop prefetches in this call. Inline: every matmul of a step asks.
inline cpu::RowPrefetch PrefetchOf(const std::optional<NextRows>& next) {
  if (!next || *next->indices == nullptr) return {nullptr, nullptr, 0, 0};
  return {*next->table, *next->indices + next->first, next->count,
          next->row_bytes};
}

// The loop of one model, called for each model on values taken out for it.
Implementations OneModelAtATime(const LoopOp& op);

#define OP(kind, ...) Implementations Lower##kind(const LoopOp& op);
#include "compiler/ir/ops.def"
#undef OP

}  // namespace onestep::loops

#endif  // ONESTEP_COMPILER_LOWER_LOOPS_LOOP_OP_H_
