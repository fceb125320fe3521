// SPDX-License-Identifier: Apache-2.0
// The roles of an update's operands, for every backend.
#ifndef ONESTEP_COMPILER_LOWER_UPDATE_OPERANDS_H_
#define ONESTEP_COMPILER_LOWER_UPDATE_OPERANDS_H_

#include "compiler/ir/graph.h"
#include "kernels/update.h"

namespace onestep {

// Operands are w, dw, the states, lr, where the rule reads it step, and then
// the last hyper-parameters where those are read at run time. Results are the
// new w and the new states.
struct UpdateOperands {
  struct Hyper {
    float value = 0;   // the attribute
    int operand = -1;  // that is read instead; -1: none
  };
  UpdateRule rule = UpdateRule::kSgd;
  int states = 0;  // operands 2, 3, ..., results 1, 2, ...
  int lr = 0;
  int step = -1;  // -1: none
  int hypers = 0;
  Hyper hyper[kMaxUpdateHypers];  // the float attributes, in their order
  bool flag = false;              // the bool attribute
};

// REQUIRES: the node is an update.
UpdateOperands OperandsOfUpdate(const Node& node);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_UPDATE_OPERANDS_H_
