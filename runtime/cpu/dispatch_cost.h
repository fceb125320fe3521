// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CPU_DISPATCH_COST_H_
#define ONESTEP_RUNTIME_CPU_DISPATCH_COST_H_

#include "absl/status/statusor.h"

namespace onestep {

// What it costs to call a chain's steps when there is nothing to compute,
// measured here and now on one thread, in nanoseconds.
struct DispatchCost {
  double clock_ns = 0;       // what a call of a traced run takes longer
  double clock_step_ns = 0;  // from one reading of it to the next
  double call_ns = 0;        // an empty call of a chain
  double matmul_ns = 0;      // a oneDNN matmul of 1x1 by 1x1, call included
  double eltwise_ns = 0;     // a oneDNN eltwise over one value, likewise
};

// Takes some 40 ms. The error is oneDNN's, when it makes no primitive.
absl::StatusOr<DispatchCost> MeasureDispatchCost();

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_DISPATCH_COST_H_
