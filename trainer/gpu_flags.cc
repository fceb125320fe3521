// SPDX-License-Identifier: Apache-2.0
#include "trainer/gpu_flags.h"

#include <cstdint>
#include <string>

#include "runtime/base/status.h"
#include "trainer/numbers.h"

namespace onestep {
namespace {

constexpr int64_t kMaxStepsPerLaunch = 1024;

}  // namespace

void AddGpuFlags(Config& config, FlagSet& flags) {
  CudaOptions& cuda = config.compile.cuda;
  const Verb verb = config.verb;
  flags.Group("GPU");
  flags.Choice("--math", &cuda.math, "How fp32 matrices are multiplied");
  if (verb == Verb::kEval || verb == Verb::kPredict) return;
  if (verb == Verb::kBench) {  // which compares them
    flags.Choice("--tier", &cuda.tier,
                 "Time this tier beside library, and no other");
  } else {
    flags.Choice(
        "--tier", &cuda.tier,
        "What runs the step: cuBLASLt's matmuls (library), three kernels "
        "(fused), or one kernel for many steps (persistent)");
    flags.Choice(
        "--first-layer", &cuda.first_layer,
        "Of the tiers fused and persistent: fp32 multiply-adds, or exact "
        "products of bytes with weights split into three bf16");
  }
  flags.Value(
      "--steps-per-launch", "N|auto",
      "Train steps of one CUDA graph [auto: by the number of its nodes]",
      [&cuda](const std::string& text) -> absl::Status {
        if (text == "auto") {
          cuda.steps_per_launch = 0;
          return absl::OkStatus();
        }
        ASSIGN_OR_RETURN(cuda.steps_per_launch,
                         ParseInteger(text, 1, kMaxStepsPerLaunch));
        return absl::OkStatus();
      });
  flags.Value(
      "--device-data", "MIB",
      "Device memory for the rows; of a larger table the rows come as steps "
      "need them [what is free]",
      [&cuda](const std::string& text) -> absl::Status {
        ASSIGN_OR_RETURN(const int64_t mib, ParseInteger(text, 1, 1 << 24));
        cuda.table_limit_bytes = mib << 20;
        return absl::OkStatus();
      });
  if (verb == Verb::kTrain || verb == Verb::kGraph) {
    flags.Text(
        "--dump-cuda-graph", "FILE", &config.cuda_graph,
        "Write the planned CUDA graph there, for Graphviz; where a GPU is, "
        "CUDA's own drawing beside it");
  }
}

}  // namespace onestep
