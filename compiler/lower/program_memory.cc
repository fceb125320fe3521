// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/program_memory.h"

#include <algorithm>
#include <set>
#include <vector>

#include "compiler/lower/memory_plan.h"
#include "runtime/base/buffer.h"

namespace onestep {
namespace {

// Whether a gradient, or a sum of gradients, may pass through the node to
// `value` by `operand`: it is updated by it, is a part of it, or has its
// elements. What else the node reads, gradients are made of.
bool PassesGradient(Value value, Value operand) {
  const Node& node = *value.node;
  return node.def().Has(kUpdate) || node.kind == OpKind::kSlice ||
         node.kind == OpKind::kExchange || MayOverwrite(value, operand);
}

// The slots of a param's new value, of its gradient, and of what that was
// summed up from.
void AddGradientSlots(const MemoryPlan& plan, Value value, int64_t elements,
                      std::set<int>& slots) {
  if (value.node->def().Has(kLeaf) || value.type().num_elements() != elements) {
    return;
  }
  slots.insert(plan.SlotOf(value));
  for (const Value operand : value.node->operands) {
    if (!PassesGradient(value, operand)) continue;
    AddGradientSlots(plan, operand, elements, slots);
  }
}

}  // namespace

void ProgramMemory::AddArena(const Graph& graph, const MemoryPlan& plan) {
  std::set<int> slots;
  for (const Output& out : graph.outputs()) {
    if (out.kind != Output::kUpdate) continue;
    AddGradientSlots(plan, out.value, out.value.type().num_elements(), slots);
  }
  // What lies in each block of the arena.
  std::vector<bool> is_gradient(plan.arena_bytes / kBufferAlignment, false);
  std::vector<bool> is_other(is_gradient.size(), false);
  for (int s = 0; s < static_cast<int>(plan.slots.size()); ++s) {
    const Slot& slot = plan.slots[s];
    if (slot.offset < 0) continue;
    std::vector<bool>& blocks = slots.count(s) > 0 ? is_gradient : is_other;
    std::fill_n(blocks.begin() + slot.offset / kBufferAlignment,
                AlignUp(slot.bytes) / kBufferAlignment, true);
  }
  int64_t bytes = 0;
  for (size_t i = 0; i < is_other.size(); ++i) {
    if (is_gradient[i] && !is_other[i]) bytes += kBufferAlignment;
  }
  gradients += bytes;
  activations += plan.arena_bytes - bytes;
}

void ProgramMemory::AddParams(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->kind != OpKind::kParam) continue;
    params[node->name()] += node->types[0].bytes();
  }
}

}  // namespace onestep
