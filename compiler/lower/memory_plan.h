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

// Where every value of a graph lives.
//
// Leaves are outside memory. The new value of a param is written straight to
// the param's memory when no reader of the old value runs later (and the node
// itself may write over what it reads); else to the arena, and copied when the
// step ends. Other values are in one arena: two whose lifetimes do not touch
// may share bytes, and an elementwise op may write over an operand that dies
// there. Results and constants keep their bytes for the whole step.
struct MemoryPlan {
  std::vector<Slot> slots;  // slots[0] is Chain::kScratch
  std::map<std::pair<const Node*, int>, int> slot_of;
  // At the end of the step, in order: from slot -> to slot.
  std::vector<std::pair<int, int>> copies;
  int64_t arena_bytes = 0;
  int64_t bytes_without_reuse = 0;  // every arena value with its own bytes

  int SlotOf(Value value) const {
    return slot_of.at({value.node, value.index});
  }
  // A table for people: value, type, place, lifetime; the totals before and
  // after.
  std::string ToString(const Graph& graph) const;

  struct Lifetime {
    int first = 0, last = 0;  // positions in graph.nodes()
    std::string values;       // "%3, %4 (in place)"
  };
  std::vector<Lifetime> lifetimes;  // one per slot
};

// Outputs that are leaves or constants, or share a value with another output,
// first get a copying `scale` of their own, so that every output has a node and
// a slot. InvalidArgument when such an output is not f32.
absl::Status SeparateOutputs(Graph& graph);

// Without `reuse` no two values share bytes but where one is made in place, so
// that nodes that are not one another's operands can run side by side.
// REQUIRES: a verified graph after SeparateOutputs.
MemoryPlan PlanMemory(const Graph& graph, bool reuse = true);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_MEMORY_PLAN_H_
