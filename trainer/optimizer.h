// SPDX-License-Identifier: Apache-2.0
// The optimizers, as a table: what a train step, its state and its
// measurements need to know of each.
#ifndef ONESTEP_TRAINER_OPTIMIZER_H_
#define ONESTEP_TRAINER_OPTIMIZER_H_

#include <cstdint>
#include <vector>

#include "compiler/compiler.h"

namespace onestep {

enum class OptimizerKind : uint8_t {
#define OPTIMIZER(Kind, ...) k##Kind,
#include "trainer/optimizers.def"
#undef OPTIMIZER
};
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kSgd;
  float momentum = 0.9f;
  bool nesterov = false;
  float weight_decay = 0;  // L2, for adamw decoupled
  // Weight decay, and of kMomentum the momentum, are inputs of the step in
  // place of the two numbers above.
  bool hyper_inputs = false;
};

struct Optimizer {
  OptimizerKind kind;
  const char* name;  // as --optimizer takes it
  OpKind update;     // the op that updates a param
  Attrs (*attrs)(const OptimizerSpec& spec);
  // The state of param w1 is "w1.<name>" for each of these, with the shape of
  // w1, in the order of the update's operands and results.
  std::vector<const char*> states;
  bool reads_step;  // whether the update reads the step's number
  // The inputs that hyper_inputs makes, in the order of the update's operands.
  std::vector<const char*> hyper_inputs;
  // A rate so high that a wrong gradient shows in the losses of a few steps.
  float check_rate;
};

// A row for each optimizer, those of optimizers.def.
const std::vector<Optimizer>& AllOptimizers();

const Optimizer& OptimizerOf(OptimizerKind kind);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_OPTIMIZER_H_
