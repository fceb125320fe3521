// SPDX-License-Identifier: Apache-2.0
// What launches, copies and matmuls cost on a GPU: the figures that the length
// of a graph and the advice for a GPU are planned by.
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_PROBE_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_PROBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_api.h"

namespace onestep {

// The kernels of the graph that the probe times.
inline constexpr int kProbedChain = 64;
// The names of the rows that later runs plan by.
inline constexpr char kGraphNodeRow[] = "graph node, chain of 64";
inline constexpr char kGraphLaunchRow[] =
    "CPU time of a graph launch, chain of 64";
inline constexpr char kStreamLaunchRow[] =
    "kernel launched on a stream, back to back";
inline constexpr char kToDeviceRow[] = "copy to the device";
inline constexpr char kDeviceMemoryRow[] = "device memory, read and written";

// With the defaults a probe takes some 20 s on a large GPU, most of it to plan
// the matmuls.
struct CudaProbeOptions {
  int samples = 9;     // of each row; their median counts
  int launches = 200;  // kernels that are queued for one sample
  int64_t copy_bytes = int64_t{256} << 20;
  int64_t matmul = 4096;  // m, n and k
};

struct CudaProbeRow {
  std::string name;          // "graph node, chain of 64"
  std::string unit;          // "ns", "GB/s" or "TFLOP/s"
  double value = 0;          // the median
  double low = 0, high = 0;  // of the samples
  // Why there is no value, or why the value cannot be trusted; "": it can.
  std::string doubt;
};

struct CudaProbe {
  CudaDevice device;
  std::string matmul_library;
  std::vector<CudaProbeRow> rows;
};

// Error codes as in cuda_api.h. A measurement that the device or the library
// cannot do is a row without a value.
absl::StatusOr<CudaProbe> RunCudaProbe(CudaApi& cuda,
                                       const CudaProbeOptions& options = {});

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_PROBE_H_
