// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_occupancy.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/kernel_resources.h"
#include "kernels/launch.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/cuda_graph.h"

namespace onestep {
namespace {

// CUDA C++ Programming Guide 13, "Technical Specifications per Compute
// Capability". The same on all of those: 64 K registers in four parts, handed
// to warps by 256; shared memory is handed out by 128 bytes, and 1 KiB of each
// block's is the system's.
struct Limits {
  int64_t warps, blocks;  // of a multiprocessor
};
constexpr int64_t kWarp = 32, kParts = 4, kPartRegisters = 16384;
constexpr int64_t kRegisterUnit = 256, kSharedUnit = 128, kSystemShared = 1024;

std::optional<Limits> LimitsOf(const CudaDevice& device) {
  switch (10 * device.compute_major + device.compute_minor) {
    case 80:
    case 90:
    case 100:
      return Limits{64, 32};
    case 86:
      return Limits{48, 16};
    case 89:
      return Limits{48, 24};
  }
  return std::nullopt;
}

int64_t RoundUp(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

int64_t WarpsOf(const Launch& launch) {
  return RoundUp(launch.block.size(), kWarp) / kWarp;
}

// Blocks of the kernel that one multiprocessor holds at once.
int64_t BlocksThatFit(const Launch& launch, const KernelResources& resources,
                      const CudaDevice& device, const Limits& limits) {
  const int64_t warps = WarpsOf(launch);
  const int64_t registers =
      RoundUp(std::max(1, resources.registers) * kWarp, kRegisterUnit);
  const int64_t shared =
      RoundUp(launch.shared_bytes + resources.shared_bytes, kSharedUnit) +
      kSystemShared;
  return std::min({limits.warps / warps, limits.blocks,
                   kPartRegisters / registers * kParts / warps,
                   (device.max_shared_bytes + kSystemShared) / shared});
}

CudaOccupancy MeanOf(absl::Span<const CudaOccupancyReport::Node> nodes) {
  CudaOccupancy mean;
  for (const auto member :
       {&CudaOccupancy::blocks, &CudaOccupancy::multiprocessors_busy,
        &CudaOccupancy::occupancy}) {
    double sum = 0;
    int known = 0;
    for (const auto& [label, occupancy] : nodes) {
      sum += (occupancy.*member).value_or(0);
      known += (occupancy.*member).has_value();
    }
    if (known > 0) mean.*member = sum / known;
  }
  return mean;
}

}  // namespace

CudaOccupancy OccupancyOf(const Launch& launch,
                          const KernelResources* resources,
                          const CudaDevice& device) {
  // A cluster is placed whole.
  const int64_t cluster = launch.cluster;
  const int64_t usable = device.multiprocessors / cluster * cluster;
  const int64_t blocks = launch.grid.size();
  CudaOccupancy result;
  result.blocks = blocks;
  result.multiprocessors_busy = std::min(blocks, usable);
  const std::optional<Limits> limits = LimitsOf(device);
  if (resources == nullptr || !limits) return result;
  const int64_t at_once = std::min(
      blocks, usable * BlocksThatFit(launch, *resources, device, *limits));
  result.occupancy =
      static_cast<double>(at_once * WarpsOf(launch)) /
      static_cast<double>(device.multiprocessors * limits->warps);
  return result;
}

CudaOccupancyReport OccupancyOf(absl::Span<const CudaNode> nodes, bool queued,
                                const CudaDevice& device) {
  CudaOccupancyReport report;
  report.multiprocessors = device.multiprocessors;
  for (const CudaNode& node : nodes) {
    CudaOccupancy occupancy;
    if (!node.library) {
      occupancy = OccupancyOf(node.launch,
                              FindKernelResources(node.launch.name), device);
    }
    report.nodes.push_back({node.label, occupancy});
  }
  report.mean = MeanOf(report.nodes);
  if (queued) report.utilisation_counter = 1;
  return report;
}

}  // namespace onestep
