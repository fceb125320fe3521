// SPDX-License-Identifier: Apache-2.0
#include "compiler/own_memory.h"

#include <algorithm>
#include <set>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/lower/memory_plan.h"
#include "runtime/base/buffer.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// The operands that a gradient or a sum of gradients reaches `node` by: its
// other operands are what a gradient is made of.
std::vector<Value> GradientsInto(const Node& node) {
  switch (node.kind) {
    case OpKind::kAdd:
    case OpKind::kScale:
    case OpKind::kMulScalar:
    case OpKind::kSlice:
    case OpKind::kExchange:
      return node.operands;
    case OpKind::kMatMul:
      if (!node.as<MatMulAttrs>().accumulate) return {};
      return {node.operands.back()};
    case OpKind::kSparseOuter:
      if (!node.as<SparseOuterAttrs>().accumulate) return {};
      return {node.operands.back()};
    default:
      return node.def().Has(kUpdate) ? node.operands : std::vector<Value>();
  }
}

// The slots of a param's new value, of its gradient, and of what that was
// summed up from.
void AddGradientSlots(const MemoryPlan& plan, Value value, int64_t elements,
                      std::set<int>& slots) {
  if (value.node->def().Has(kLeaf) || value.type().num_elements() != elements) {
    return;
  }
  slots.insert(plan.SlotOf(value));
  for (const Value operand : GradientsInto(*value.node)) {
    AddGradientSlots(plan, operand, elements, slots);
  }
}

void AddArena(const Graph& graph, OwnMemory& memory) {
  const MemoryPlan plan = PlanMemory(graph);
  std::set<int> gradients;
  for (const Output& out : graph.outputs()) {
    if (out.kind != Output::kUpdate) continue;
    AddGradientSlots(plan, out.value, out.value.type().num_elements(),
                     gradients);
  }
  // What lies in each block of the arena.
  std::vector<bool> is_gradient(plan.arena_bytes / kBufferAlignment, false);
  std::vector<bool> is_other(is_gradient.size(), false);
  for (int s = 0; s < static_cast<int>(plan.slots.size()); ++s) {
    const Slot& slot = plan.slots[s];
    if (slot.offset < 0) continue;
    std::vector<bool>& blocks = gradients.count(s) > 0 ? is_gradient : is_other;
    std::fill_n(blocks.begin() + slot.offset / kBufferAlignment,
                AlignUp(slot.bytes) / kBufferAlignment, true);
  }
  int64_t bytes = 0;
  for (size_t i = 0; i < is_other.size(); ++i) {
    if (is_gradient[i] && !is_other[i]) bytes += kBufferAlignment;
  }
  memory.gradients += bytes;
  memory.activations += plan.arena_bytes - bytes;
}

// The workers' programs are made anew, for worker 0's alone was kept.
absl::Status AddTeam(TeamReport& team, OwnMemory& memory) {
  Partition& partition = team.partition;
  ASSIGN_OR_RETURN(std::vector<Graph> graphs, LocalGraphs(partition));
  for (Graph& graph : graphs) {
    RETURN_IF_ERROR(SeparateOutputs(graph));
    AddArena(graph, memory);
    for (const auto& node : graph.nodes()) {
      if (node->kind != OpKind::kParam) continue;
      memory.params[node->name()] += node->types[0].bytes();
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OwnMemory> MemoryOf(Compiled& compiled) {
  OwnMemory memory;
  if (compiled.team) {
    RETURN_IF_ERROR(AddTeam(*compiled.team, memory));
  } else {
    AddArena(compiled.graph, memory);
  }
  if (compiled.cuda) {
    for (const auto& node : compiled.graph.nodes()) {
      if (node->kind != OpKind::kParam) continue;
      memory.params[node->name()] += node->types[0].bytes();
    }
  }
  memory.other = compiled.executable->arena_bytes() - memory.gradients -
                 memory.activations;
  return memory;
}

}  // namespace onestep
