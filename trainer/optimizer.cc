// SPDX-License-Identifier: Apache-2.0
#include "trainer/optimizer.h"

#include <algorithm>

namespace onestep {
namespace {

Attrs Sgd(const OptimizerSpec& spec) { return SgdAttrs{spec.weight_decay}; }

Attrs Momentum(const OptimizerSpec& spec) {
  return MomentumAttrs{spec.momentum, spec.nesterov, spec.weight_decay};
}

template <bool kDecoupled>
Attrs Adam(const OptimizerSpec& spec) {
  AdamAttrs attrs;
  attrs.weight_decay = spec.weight_decay;
  attrs.decoupled = kDecoupled;
  return attrs;
}

}  // namespace

const std::vector<Optimizer>& AllOptimizers() {
  static const std::vector<Optimizer> optimizers = {
      {OptimizerKind::kSgd,
       "sgd",
       OpKind::kSgdUpdate,
       Sgd,
       /*states=*/{},
       /*reads_step=*/false,
       {"weight_decay"},
       0.1f},
      {OptimizerKind::kMomentum,
       "momentum",
       OpKind::kMomentumUpdate,
       Momentum,
       {"v"},
       /*reads_step=*/false,
       {"momentum", "weight_decay"},
       0.01f},
      {OptimizerKind::kAdam,
       "adam",
       OpKind::kAdamUpdate,
       Adam<false>,
       {"m", "v"},
       /*reads_step=*/true,
       {"weight_decay"},
       0.001f},
      {OptimizerKind::kAdamW,
       "adamw",
       OpKind::kAdamUpdate,
       Adam<true>,
       {"m", "v"},
       /*reads_step=*/true,
       {"weight_decay"},
       0.001f}};
  return optimizers;
}

const Optimizer& OptimizerOf(OptimizerKind kind) {
  const std::vector<Optimizer>& all = AllOptimizers();
  return *std::find_if(all.begin(), all.end(), [kind](const Optimizer& row) {
    return row.kind == kind;
  });
}

}  // namespace onestep
