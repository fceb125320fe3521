// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/buffer.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, bool reuse) : graph_(graph), reuse_(reuse) {
    for (int i = 0; i < graph.size(); ++i) position_[Node(i)] = i;
    end_ = graph.size();
  }

  MemoryPlan Run() {
    NewSlot("", 0, 0);  // Chain::kScratch
    // Leaves first, because an update may come before its param.
    for (const bool leaves : {true, false}) {
      for (int i = 0; i < end_; ++i) {
        if (Node(i)->def().Has(kLeaf) == leaves) PlaceResults(i);
      }
    }
    PlaceCopies();
    Pack();
    return std::move(plan_);
  }

 private:
  onestep::Node* Node(int i) const { return graph_.nodes()[i].get(); }

  int NewSlot(std::string name, int64_t bytes, int first) {
    plan_.slots.push_back({std::move(name), bytes, -1});
    plan_.lifetimes.push_back({first, first, ""});
    in_arena_.push_back(false);
    return static_cast<int>(plan_.slots.size()) - 1;
  }

  void PlaceResults(int i) {
    onestep::Node* const node = Node(i);
    for (int r = 0; r < static_cast<int>(node->types.size()); ++r) {
      const Value value = node->result(r);
      bool in_place = false;
      const int slot = Place(value, i, in_place);
      plan_.slot_of[{node, r}] = slot;
      if (in_arena_[slot]) {
        plan_.bytes_without_reuse += AlignUp(value.type().bytes());
      }
      MemoryPlan::Lifetime& life = plan_.lifetimes[slot];
      life.last = std::max(life.last, LastUse(value, i));
      absl::StrAppend(&life.values, life.values.empty() ? "" : ", ",
                      graph_.NameOf(value), in_place ? " (in place)" : "");
    }
  }

  // The slot of `value`, a result of the node at position i. Sets `in_place`
  // when the slot is that of an operand.
  int Place(Value value, int i, bool& in_place) {
    const onestep::Node* const node = value.node;
    if (node->def().Has(kLeaf)) {
      return NewSlot(node->name(), value.type().bytes(), 0);
    }
    for (const Output& out : graph_.outputs()) {
      if (out.value != value) continue;
      if (out.kind == Output::kUpdate) {
        const Value param = graph_.FindLeaf(out.name)->result();
        if (UpdatesInPlace(param, value, i)) {
          in_place = true;
          return plan_.SlotOf(param);
        }
        return NewArenaSlot("", value, i);
      }
      return NewArenaSlot(out.name, value, i);
    }
    const int reused = DyingOperand(value, i);
    in_place = reused >= 0;
    return in_place ? reused : NewArenaSlot("", value, i);
  }

  int NewArenaSlot(std::string name, Value value, int i) {
    // Constants are written once, before the first node runs.
    const bool constant = value.node->kind == OpKind::kConstant;
    const int slot =
        NewSlot(std::move(name), value.type().bytes(), constant ? 0 : i);
    in_arena_[slot] = true;
    return slot;
  }

  // Whether no node after position i reads the old value and node i may
  // overwrite its operand.
  bool UpdatesInPlace(Value param, Value value, int i) const {
    for (const onestep::Node* user : graph_.Users(param)) {
      if (position_.at(user) > i) return false;
      if (user == value.node && !MayOverwrite(value, param)) return false;
    }
    return true;
  }

  // The arena slot of an operand of node i that `value` may overwrite, because
  // no later node reads it; -1 when there is none.
  int DyingOperand(Value value, int i) const {
    const onestep::Node* const node = value.node;
    // From the last operand, because the gradient is the last one and libraries
    // can overwrite only that.
    for (int k = static_cast<int>(node->operands.size()) - 1; k >= 0; --k) {
      const Value operand = node->operands[k];
      const int slot = plan_.SlotOf(operand);
      if (!in_arena_[slot] || plan_.lifetimes[slot].last > i) continue;
      if (plan_.slots[slot].name.empty() && MayOverwrite(value, operand) &&
          !TakenBySibling(value, slot)) {
        return slot;
      }
    }
    return -1;
  }

  bool TakenBySibling(Value value, int slot) const {
    for (int r = 0; r < value.index; ++r) {
      if (plan_.slot_of.at({value.node, r}) == slot) return true;
    }
    return false;
  }

  int LastUse(Value value, int i) const {
    int last = i;
    for (const onestep::Node* user : graph_.Users(value)) {
      last = std::max(last, position_.at(user));
    }
    const bool forever = graph_.IsOutput(value) ||
                         value.node->kind == OpKind::kConstant ||
                         value.node->def().Has(kLeaf);
    return forever ? end_ : last;
  }

  void PlaceCopies() {
    for (const Output& out : graph_.outputs()) {
      if (out.kind != Output::kUpdate) continue;
      const int from = plan_.SlotOf(out.value);
      const int to = plan_.SlotOf(graph_.FindLeaf(out.name)->result());
      if (from != to) plan_.copies.emplace_back(from, to);
    }
  }

  // Assigns offsets, largest slots first: each gets the lowest offset at which
  // it overlaps no slot with an overlapping lifetime.
  void Pack() {
    std::vector<int> order;
    for (int s = 0; s < static_cast<int>(plan_.slots.size()); ++s) {
      if (!in_arena_[s]) continue;
      order.push_back(s);
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return plan_.slots[a].bytes > plan_.slots[b].bytes;
    });
    std::vector<int> placed;  // by offset
    for (int s : order) {
      int64_t offset = 0;
      for (int p : placed) {
        if (!LiveTogether(s, p)) continue;
        if (offset + AlignUp(plan_.slots[s].bytes) <= plan_.slots[p].offset) {
          break;
        }
        offset = std::max(
            offset, plan_.slots[p].offset + AlignUp(plan_.slots[p].bytes));
      }
      plan_.slots[s].offset = offset;
      plan_.arena_bytes =
          std::max(plan_.arena_bytes, offset + AlignUp(plan_.slots[s].bytes));
      placed.insert(std::upper_bound(placed.begin(), placed.end(), s,
                                     [&](int a, int b) {
                                       return plan_.slots[a].offset <
                                              plan_.slots[b].offset;
                                     }),
                    s);
    }
  }

  bool LiveTogether(int a, int b) const {
    if (!reuse_) return true;
    const auto& x = plan_.lifetimes[a];
    const auto& y = plan_.lifetimes[b];
    return x.first <= y.last && y.first <= x.last;
  }

  const Graph& graph_;
  const bool reuse_;
  std::map<const onestep::Node*, int> position_;
  int end_ = 0;
  std::vector<bool> in_arena_;
  MemoryPlan plan_;
};

}  // namespace

absl::Status SeparateOutputs(Graph& graph) {
  const std::vector<Output> outputs = graph.outputs();
  graph.set_insertion_point(nullptr);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value value = outputs[i].value;
    const bool shared =
        std::any_of(outputs.begin(), outputs.begin() + i,
                    [&](const Output& o) { return o.value == value; });
    const bool made =
        !value.node->def().Has(kLeaf) && value.node->kind != OpKind::kConstant;
    if (made && !shared) continue;
    if (value.type().dtype != DType::kF32) {
      return absl::InvalidArgumentError(absl::StrCat("output ", outputs[i].name,
                                                     ": want f32 to copy, got ",
                                                     value.type().ToString()));
    }
    graph.set_phase(value.node->phase);
    graph.SetOutput(static_cast<int>(i), graph.Add(OpKind::kScale, {value}));
  }
  return absl::OkStatus();
}

MemoryPlan PlanMemory(const Graph& graph, bool reuse) {
  return Planner(graph, reuse).Run();
}

std::string MemoryPlan::ToString(const Graph& graph) const {
  std::string text = absl::StrFormat("%12s %12s  %-9s %s\n", "offset", "bytes",
                                     "steps", "values");
  std::vector<int> order(slots.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return slots[a].offset < slots[b].offset;
  });
  // Numbers steps as the list of steps does: from 1, without leaves.
  int leaves = 0;
  std::vector<int> number;
  for (const auto& node : graph.nodes()) {
    number.push_back(std::max(1, static_cast<int>(number.size()) - leaves + 1));
    leaves += node->def().Has(kLeaf);
  }
  for (int s : order) {
    if (s == Chain::kScratch) continue;
    const std::string place =
        slots[s].offset < 0 ? "outside" : absl::StrCat(slots[s].offset);
    const std::string steps =
        slots[s].offset < 0
            ? "all"
            : absl::StrCat(number[lifetimes[s].first], "..",
                           lifetimes[s].last == graph.size()
                               ? "end"
                               : absl::StrCat(number[lifetimes[s].last]));
    absl::StrAppendFormat(&text, "%12s %12d  %-9s %s\n", place, slots[s].bytes,
                          steps, lifetimes[s].values);
  }
  for (const auto& [from, to] : copies) {
    absl::StrAppend(&text, "copied at the end: ", lifetimes[from].values,
                    " -> %", slots[to].name, "\n");
  }
  absl::StrAppend(&text, "arena: ", bytes_without_reuse,
                  " bytes without reuse, ", arena_bytes, " with\n");
  return text;
}

}  // namespace onestep
