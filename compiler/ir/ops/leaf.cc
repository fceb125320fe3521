// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/ops/rules.h"

namespace onestep {
namespace {

absl::StatusOr<Types> TypeIsGiven(const Types&, const Attrs&) {
  return absl::InternalError("a leaf: its type is given, not inferred");
}

OpCost Free(const Node&) { return {}; }

// Leaves are there before the step.
constexpr OpRules kLeafRules = {
    .infer = TypeIsGiven,
    .grad = NotDifferentiated,
    .cost = Free,
    .batch = AllShared,
    .partition = SplitAlike,
    .alias = NeverInPlace,
};

}  // namespace

const OpRules kInputRules = kLeafRules;
const OpRules kParamRules = kLeafRules;

// A constant is written once, at the start of a step.
const OpRules kConstantRules = {
    .infer = TypeIsGiven,
    .grad = [](const GradContext&) -> absl::StatusOr<Values> {
      return Values();
    },
    .cost = NoFlops,
    .batch = AllShared,
    .partition = SplitAlike,
    .alias = NeverInPlace,
};

}  // namespace onestep
