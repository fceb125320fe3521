// SPDX-License-Identifier: Apache-2.0
// What a lowering makes of a node on the CPU: one or more implementations, of
// which the program calls one.
#ifndef ONESTEP_COMPILER_LOWER_IMPLEMENTATION_H_
#define ONESTEP_COMPILER_LOWER_IMPLEMENTATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/lower/memory_plan.h"
#include "runtime/cpu/chain.h"
#include "runtime/cpu/onednn.h"

namespace onestep {

// The rows of a table that the next gather of a program reads, in this step or
// in the one that follows.
struct NextRows {
  char* const* table;
  int32_t* const* indices;       // points to null: no step follows
  int64_t first = 0, count = 0;  // of the indices
  int64_t row_bytes = 0;
};

struct LowerContext {
  const Graph& graph;
  const MemoryPlan& plan;
  Chain& chain;
  Onednn* onednn;  // null: not wanted
  int threads;
  // The rows that the node's loop prefetches, if it can; null: none.
  const NextRows* next_rows = nullptr;

  // The address of the value's address; null when there is no value.
  template <typename T>
  T* const* Address(Value value) const {
    return value ? chain.address<T>(plan.SlotOf(value)) : nullptr;
  }
};

// A call of a chain.
struct LoweredStep {
  Chain::Call call;
  std::string implementation;      // as people read it: "onednn brg:avx512"
  Chain::Repeat repeat = nullptr;  // see Chain::SetRepeat; or none
};

enum class KernelSource : uint8_t { kLoop, kOnednn, kXsmm };

// One way to run a node. Nothing is made, and no memory asked for, before
// `make` is called; the node and the context must then still be there.
struct Implementation {
  KernelSource source;
  // Unimplemented, with the reason, when the library has no kernel for it.
  std::function<absl::StatusOr<LoweredStep>()> make;
};
using Implementations = std::vector<Implementation>;

// The implementation from `source`, or nullptr.
const Implementation* FindImplementation(const Implementations& list,
                                         KernelSource source);

// Makes the first of `wanted` that `list` has and that can be made, and adds
// it to the context's chain. REQUIRES: `list` has the last of `wanted`.
absl::Status AddChosenStep(const LowerContext& context, Node& node,
                           const Implementations& list,
                           const std::vector<KernelSource>& wanted);

namespace loops {
// Those of our loops (kernels/cpu), of which there is one for every op but
// leaves and exchanges, and of libxsmm. REQUIRES: the op is no such op.
Implementations Lower(const LowerContext& context, Node& node);
}  // namespace loops

namespace onednn {
// oneDNN's primitive; empty where it has none for this op.
Implementations Lower(const LowerContext& context, Node& node);
}  // namespace onednn

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_IMPLEMENTATION_H_
