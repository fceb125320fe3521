// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_GPU_COST_H_
#define ONESTEP_TRAINER_MEASURE_GPU_COST_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "trainer/launch_costs.h"
#include "trainer/measure/cost_model.h"

namespace onestep {

// The expected time of a step compiled for a GPU, or planned for one, from what
// a probe measured of launches, copies and a large matmul: each node takes the
// longest of a launch, of its FLOPs on the multiprocessors that its blocks
// fill, and of its bytes. Rows lie on the device; a step brings the numbers of
// its own. Rough: no step was run, and how well small matmuls use a
// multiprocessor is not known.
//
// Unavailable: the probe does not say enough.
absl::StatusOr<StepCost> EstimateGpuStep(const KeptProbe& probe,
                                         const Compiled& compiled,
                                         int64_t batch);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_GPU_COST_H_
