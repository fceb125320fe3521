// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CPU_DISPATCH_COST_H_
#define ONESTEP_RUNTIME_CPU_DISPATCH_COST_H_

#include "absl/status/statusor.h"

namespace onestep {

// The overhead of the calls of a chain, in nanoseconds on one thread.
struct DispatchCost {
  double clock_ns = 0;       // extra time per call in a traced run
  double clock_step_ns = 0;  // resolution of the clock of a traced run
  double call_ns = 0;        // an empty call of a chain
  double matmul_ns = 0;      // a call of a oneDNN matmul of 1x1 by 1x1
  double eltwise_ns = 0;     // a call of a oneDNN eltwise on one value
};

// Measures the overhead now; takes about 40 ms. Returns oneDNN's error when it
// cannot make a primitive.
absl::StatusOr<DispatchCost> MeasureDispatchCost();

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_DISPATCH_COST_H_
