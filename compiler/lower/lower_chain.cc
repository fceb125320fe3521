// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "kernels/probe.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// Whether oneDNN's matmul beats our loop for this node. Measured on Zen 5,
// one and two threads, with AVX-512 and with AVX2; see bench/NOTES.md.
bool OnednnIsFaster(const Node& node) {
  // A primitive's own dispatch takes 0.3 us.
  if (CostOf(node).flops < 4e5) return false;
  // With AVX2 ours is 5 to 12 % behind, with AVX-512 up to 25 % ahead...
  if (!HasAvx512()) return true;
  // ... while b and c, which it does not pack, stay near the second-level
  // cache, and there is little to transpose.
  const int64_t b_bytes = node.operands[1].type().bytes();
  if (node.as<MatMulAttrs>().trans_b) return b_bytes > 64 << 10;
  return std::max(b_bytes, node.types[0].bytes()) > 7 << 19;
}

bool WantsOnednn(KernelChoice choice, const Node& node) {
  switch (choice) {
    case KernelChoice::kOnednn:
      return true;
    case KernelChoice::kLoops:
      return false;
    case KernelChoice::kBySize:
      return node.kind == OpKind::kMatMul && OnednnIsFaster(node);
  }
  CHECK(false);
}

std::string TypesText(const std::vector<Value>& values) {
  return absl::StrJoin(values, ", ", [](std::string* out, const Value& v) {
    out->append(v.type().ToString());
  });
}

absl::Status AddNodeStep(const LowerContext& context, KernelChoice choice,
                         Node& node) {
  StepInfo info = Describe(context.plan, node);
  if (WantsOnednn(choice, node)) {
    absl::StatusOr<LoweredStep> step = LowerToOnednn(context, node);
    if (step.ok()) {
      info.library = true;
      info.implementation = std::move(step->implementation);
      context.chain.AddStep(std::move(info), std::move(step->call));
      return absl::OkStatus();
    }
    if (!absl::IsUnimplemented(step.status())) return step.status();
  }
  ASSIGN_OR_RETURN(LoweredStep step, LowerToLoop(context, node));
  info.implementation = std::move(step.implementation);
  context.chain.AddStep(std::move(info), std::move(step.call));
  context.chain.SetRepeat(std::move(step.repeat));
  return absl::OkStatus();
}

}  // namespace

StepInfo Describe(const MemoryPlan& plan, Node& node) {
  StepInfo info;
  info.op = node.def().name;
  info.phase = ToString(node.phase);
  info.fused_from = absl::StrJoin(node.fused_from, " + ");
  info.origins = node.origins;
  for (const Value& operand : node.operands) {
    info.operands.push_back(operand.type());
  }
  info.results = node.types;
  std::vector<Value> results;
  for (int r = 0; r < static_cast<int>(node.types.size()); ++r) {
    results.push_back(node.result(r));
    for (const Value& operand : node.operands) {
      info.in_place |= plan.SlotOf(operand) == plan.SlotOf(results.back());
    }
  }
  const std::string attrs = PrintAttrs(node.kind, node.attrs);
  info.label =
      absl::StrCat(info.op, attrs.empty() ? "" : " ", attrs, " ",
                   TypesText(node.operands), " -> ", TypesText(results));
  const OpCost cost = CostOf(node);
  info.flops = cost.flops;
  info.bytes = cost.bytes;
  return info;
}

void AddCopyStep(const MemoryPlan& plan, Chain& chain, int from, int to) {
  StepInfo info;
  info.op = "copy";
  info.phase = ToString(Phase::kUpdate);
  const int64_t bytes = plan.slots[from].bytes;
  info.label = absl::StrCat("copy ", bytes, " bytes to ", plan.slots[to].name);
  info.implementation = "memcpy";
  info.bytes = 2.0 * bytes;
  chain.AddStep(std::move(info),
                [=, x = chain.address<char>(from),
                 y = chain.address<char>(to)] { std::memcpy(*y, *x, bytes); });
}

absl::StatusOr<std::unique_ptr<Executable>> LowerToChain(Graph& graph,
                                                         KernelChoice choice,
                                                         int threads) {
  RETURN_IF_ERROR(SeparateOutputs(graph));
  const MemoryPlan plan = PlanMemory(graph);
  ASSIGN_OR_RETURN(std::unique_ptr<Chain> chain,
                   Chain::Create(plan.slots, plan.arena_bytes));
  ASSIGN_OR_RETURN(std::shared_ptr<Onednn> onednn,
                   Onednn::Create(chain.get(), threads));
  const LowerContext context = {graph, plan, *chain, onednn.get(), threads};
  for (const auto& node : graph.nodes()) {
    if (node->def().Has(kLeaf)) continue;
    if (node->kind == OpKind::kExchange) {
      return absl::UnimplementedError(
          "exchange on a chain: it has no workers to exchange between");
    }
    if (node->kind == OpKind::kConstant) {
      chain->FillSlot(plan.SlotOf(node->result()),
                      node->as<ConstantAttrs>().value);
      continue;
    }
    RETURN_IF_ERROR(AddNodeStep(context, choice, *node));
  }
  for (const auto& [from, to] : plan.copies) {
    AddCopyStep(plan, *chain, from, to);
  }
  const int64_t calls = std::ssize(chain->steps());
  const int64_t library =
      std::count_if(chain->steps().begin(), chain->steps().end(),
                    [](const StepInfo& step) { return step.library; });
  RETURN_IF_ERROR(chain->Finish(
      absl::StrCat("chain of ", calls, " calls: ", library, " onednn ",
                   OnednnVersion(), ", ", calls - library, " own loops"),
      plan.ToString(graph)));
  return chain;
}

}  // namespace onestep
