// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_LOWER_MEMORY_PLAN_H_
#define ONESTEP_COMPILER_LOWER_MEMORY_PLAN_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/cpu/chain.h"

namespace onestep {

// The memory of every value of a graph.
//
// Leaves are in the caller's memory. The new value of a param is written
// directly to the param's memory when no later node reads the old value and the
// node itself may overwrite its operand; else it is written to the arena and
// copied at the end of the step. All other values are in one arena: values with
// disjoint lifetimes may share bytes, and an op may overwrite an operand that
// no later node reads. Results and constants keep their bytes for the whole
// step.
struct MemoryPlan {
  std::vector<Slot> slots;  // slots[0] is Chain::kScratch
  std::map<std::pair<const Node*, int>, int> slot_of;
  // The copies at the end of the step, in order: (from slot, to slot).
  std::vector<std::pair<int, int>> copies;
  int64_t arena_bytes = 0;
  int64_t bytes_without_reuse = 0;  // the arena if no values shared bytes

  int SlotOf(Value value) const {
    return slot_of.at({value.node, value.index});
  }
  // A table of the slots with offset, bytes, lifetime and values, and the total
  // bytes without and with reuse.
  std::string ToString(const Graph& graph) const;

  struct Lifetime {
    int first = 0, last = 0;  // positions in graph.nodes()
    std::string values;       // "%3, %4 (in place)"
  };
  std::vector<Lifetime> lifetimes;  // one per slot
};

// Inserts a copy (a `scale` by 1) for every output that is a leaf or a constant
// or shares its value with another output, so that every output has a separate
// node and slot. Returns InvalidArgument when such an output is not f32.
absl::Status SeparateOutputs(Graph& graph);

// Plans the memory of `graph`. Without `reuse` values share bytes only when one
// is computed in place of the other, so that independent nodes can run in
// parallel. REQUIRES: the graph is verified, and SeparateOutputs was called.
MemoryPlan PlanMemory(const Graph& graph, bool reuse = true);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_MEMORY_PLAN_H_
