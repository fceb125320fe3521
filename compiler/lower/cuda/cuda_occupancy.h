// SPDX-License-Identifier: Apache-2.0
// How much of a GPU a step fills, computed from its launches. A utilisation
// counter does not show that.
#ifndef ONESTEP_COMPILER_LOWER_CUDA_CUDA_OCCUPANCY_H_
#define ONESTEP_COMPILER_LOWER_CUDA_CUDA_OCCUPANCY_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace onestep {

struct CudaDevice;
struct CudaNode;
struct KernelResources;
struct Launch;

// Of one kernel, or the means of several. nullopt: not known, for example
// because a library chooses its launches itself.
struct CudaOccupancy {
  std::optional<double> blocks;
  std::optional<double> multiprocessors_busy;  // that get a block at all
  // Warps that run at once, of those that the whole device can hold.
  std::optional<double> occupancy;
};

struct CudaOccupancyReport {
  int multiprocessors = 0;  // of the device
  struct Node {
    std::string label;
    CudaOccupancy occupancy;
  };
  std::vector<Node> nodes;
  // Over the nodes of which it is known, however long each runs.
  CudaOccupancy mean;
  // What a utilisation counter (nvidia-smi's) shows: the share of time in which
  // any kernel runs, even one of a single block. 1 when steps are queued as a
  // graph or are one kernel; not known when the host launches each node.
  std::optional<double> utilisation_counter;
};

// `resources`: the kernel's, null: not known.
CudaOccupancy OccupancyOf(const Launch& launch,
                          const KernelResources* resources,
                          const CudaDevice& device);

// `queued`: nothing waits for the host between two nodes.
CudaOccupancyReport OccupancyOf(absl::Span<const CudaNode> nodes, bool queued,
                                const CudaDevice& device);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_CUDA_CUDA_OCCUPANCY_H_
