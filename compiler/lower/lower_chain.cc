// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/lower/implementation.h"
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

absl::Status AddNodeStep(const LowerContext& context, KernelChoice choice,
                         Node& node) {
  Implementations list = loops::Lower(context, node);
  std::vector<KernelSource> wanted = {KernelSource::kLoop};
  if (WantsOnednn(choice, node)) {
    const Implementations primitives = onednn::Lower(context, node);
    list.insert(list.end(), primitives.begin(), primitives.end());
    wanted.insert(wanted.begin(), KernelSource::kOnednn);
  }
  return AddChosenStep(context, node, list, wanted);
}

// "relu_grad, nll_loss": the ops that oneDNN was asked for and has no primitive
// for.
std::string OpsOfLoops(const Chain& chain) {
  std::vector<std::string> ops;
  for (const StepInfo& step : chain.steps()) {
    if (!step.library && std::count(ops.begin(), ops.end(), step.op) == 0) {
      ops.push_back(step.op);
    }
  }
  return absl::StrJoin(ops, ", ");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executable>> LowerToChain(
    Graph& graph, KernelChoice choice, int threads, ProgramMemory* memory) {
  RETURN_IF_ERROR(SeparateOutputs(graph));
  const MemoryPlan plan = PlanMemory(graph);
  if (memory != nullptr) memory->AddArena(graph, plan);
  ASSIGN_OR_RETURN(std::unique_ptr<Chain> chain,
                   Chain::Create(plan.slots, plan.arena_bytes));
  ASSIGN_OR_RETURN(Onednn onednn, Onednn::Create(chain.get(), threads));
  const LowerContext context = {graph, plan, *chain, &onednn, threads};
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
  std::string text =
      absl::StrCat("chain of ", calls, " calls: ", library, " onednn ",
                   OnednnVersion(), ", ", calls - library, " own loops");
  if (choice == KernelChoice::kOnednn && library < calls) {
    absl::StrAppend(&text, " (no primitive: ", OpsOfLoops(*chain), ")");
  }
  RETURN_IF_ERROR(chain->Finish(std::move(text), plan.ToString(graph)));
  return chain;
}

}  // namespace onestep
