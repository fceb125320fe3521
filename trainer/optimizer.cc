// SPDX-License-Identifier: Apache-2.0
#include "trainer/optimizer.h"

namespace onestep {

const std::vector<Optimizer>& AllOptimizers() {
#define PLAIN(...) __VA_ARGS__
  static const std::vector<Optimizer> optimizers = {
#define OPTIMIZER(Kind, name, op, attrs, states, reads_step, inputs, rate) \
  {OptimizerKind::k##Kind,                                                 \
   name,                                                                   \
   OpKind::k##op,                                                          \
   [](const OptimizerSpec& spec) -> Attrs { return PLAIN attrs; },         \
   PLAIN states,                                                           \
   reads_step,                                                             \
   PLAIN inputs,                                                           \
   rate},
#include "trainer/optimizers.def"
#undef OPTIMIZER
  };
#undef PLAIN
  return optimizers;
}

const Optimizer& OptimizerOf(OptimizerKind kind) {
  return AllOptimizers()[static_cast<size_t>(kind)];
}

}  // namespace onestep
