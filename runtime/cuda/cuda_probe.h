// SPDX-License-Identifier: Apache-2.0
// What a GPU's launches, barriers, exchanges between blocks, copies and
// matmuls cost: the numbers that a dispatch and a tier are judged by.
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_PROBE_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_PROBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_api.h"

namespace onestep {

// Names of the rows that runs are planned by. Of a chain's, its length follows.
inline constexpr char kGraphNodeRow[] = "graph node, chain of ";
inline constexpr char kGraphLaunchRow[] =
    "CPU time of a graph launch, chain of ";
inline constexpr char kStreamLaunchRow[] =
    "kernel launched on a stream, back to back";
inline constexpr char kToDeviceRow[] = "copy to the device";
inline constexpr char kDeviceMemoryRow[] = "device memory, read and written";
// The chain that they are planned by.
inline constexpr int kPlannedChain = 64;

// The defaults take some 20 s on a large GPU, most of it the matmul's plans.
struct CudaProbeOptions {
  std::vector<int> chains = {1, 8, kPlannedChain, 256, 1024};  // nodes
  int samples = 9;     // the median counts
  int rounds = 2000;   // of a barrier or an exchange
  int launches = 200;  // queued for one sample
  int64_t copy_bytes = int64_t{256} << 20;
  int64_t matmul = 4096;  // m, n and k
};

struct CudaProbeRow {
  std::string name;          // "graph node, chain of 64"
  std::string unit;          // "ns", "GB/s" or "TFLOP/s"
  double value = 0;          // the median
  double low = 0, high = 0;  // of the samples
  // Why there is no value, or why it is not to be trusted; "": it is.
  std::string doubt;
};

struct CudaProbe {
  CudaDevice device;
  std::string matmul_library;
  std::vector<CudaProbeRow> rows;
};

// Codes as in cuda_api.h. What this device cannot do is a row with its reason.
absl::StatusOr<CudaProbe> RunCudaProbe(CudaApi& cuda,
                                       const CudaProbeOptions& options = {});

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_PROBE_H_
