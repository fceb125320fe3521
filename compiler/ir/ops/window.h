// SPDX-License-Identifier: Apache-2.0
// The step of a window of words as one op.
#ifndef ONESTEP_COMPILER_IR_OPS_WINDOW_H_
#define ONESTEP_COMPILER_IR_OPS_WINDOW_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/value.h"

namespace onestep {

// sgns_window and cbow_window: what one has and the other lacks is no value.
struct WindowOp {
  WindowOp() = default;
  explicit WindowOp(const Node& node);
  std::vector<Value> Operands() const;

  bool cbow = false;
  int64_t positives = 0;
  Value in, out, contexts;
  Value mask;          // of sgns_window
  Value mean, spread;  // of cbow_window
  Value outputs, weights;
  Value labels;  // or no value
  Value lr;
  enum Result { kLoss, kNewIn, kNewOut };
};

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OPS_WINDOW_H_
