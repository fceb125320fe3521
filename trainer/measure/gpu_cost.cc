// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/gpu_cost.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// Of a step's scalars: its rate and number, its loss and correct rows.
constexpr double kScalarBytes = 4 * sizeof(float);

// The multiprocessors that a node's blocks fill; 1: not known.
double BusyShare(const CudaOccupancyReport& report, size_t node) {
  if (node >= report.nodes.size() || report.multiprocessors == 0) return 1;
  const auto& busy = report.nodes[node].occupancy.multiprocessors_busy;
  return busy ? std::max(1.0, *busy) / report.multiprocessors : 1;
}

}  // namespace

absl::StatusOr<StepCost> EstimateGpuStep(const KeptProbe& probe,
                                         const Compiled& compiled,
                                         int64_t batch) {
  CHECK(compiled.cuda.has_value());
  const double launch_us =
      compiled.dispatch == Dispatch::kOps ? probe.launch_us : probe.node_us;
  if (launch_us == 0 || probe.matmul_tflops == 0 || probe.memory_gbs == 0 ||
      probe.to_device_gbs == 0) {
    return absl::UnavailableError(
        absl::StrCat("the probe of ", probe.device,
                     " lacks launches, copies or matmuls: run trainer probe"));
  }
  StepCost cost;
  const std::vector<StepInfo>& steps = compiled.executable->steps();
  for (size_t i = 0; i < steps.size(); ++i) {
    const double share = BusyShare(compiled.cuda->occupancy, i);
    const double compute_us =
        steps[i].flops / (probe.matmul_tflops * share) * 1e-6;
    const double memory_us = steps[i].bytes / probe.memory_gbs * 1e-3;
    cost.launch_us += launch_us;
    const double rest_us =
        std::max(0.0, std::max(compute_us, memory_us) - launch_us);
    (compute_us > memory_us ? cost.compute_us : cost.memory_us) += rest_us;
  }
  cost.transfer_us =
      (static_cast<double>(batch) * sizeof(int32_t) + kScalarBytes) /
      probe.to_device_gbs * 1e-3;
  cost.us =
      cost.launch_us + cost.compute_us + cost.memory_us + cost.transfer_us;
  return cost;
}

}  // namespace onestep
