// SPDX-License-Identifier: Apache-2.0
// Runs a kernel on the CPU: the .cu file compiled by g++ (CMake function
// onestep_emulated_kernels), every thread of every block a fiber, one at a
// time, in an order that the seed decides. Device addresses are ordinary ones.
//
// A launch that succeeds for many seeds says that the kernel has no deadlock,
// no barrier that only a part of its threads reach, no push past a block's
// shared memory; and where its results are the same for many seeds, that it
// probably has no race. To provoke those: threads run in random order,
// warps and whole blocks are stalled at times; dynamic shared memory begins as
// NaN; bulk copies happen late, in any order, and read their source only then;
// blocks of an ordinary launch are not all resident at once.
//
// Not emulated: weak memory order (a write is seen at once by all), bank
// conflicts, the time that anything takes. That FenceAsync lacks is found only
// where no thread at all called it. The clock moves only a little, unless all
// wait: then it jumps to the time-outs.
#ifndef ONESTEP_TESTS_CUDA_EMULATOR_EMULATOR_H_
#define ONESTEP_TESTS_CUDA_EMULATOR_EMULATOR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/launch.h"

namespace onestep {

struct EmulatorOptions {
  uint64_t seed = 0;
  // Of the device that is emulated.
  int max_shared_bytes = 232448;  // of a block
  int max_cluster = 16;
};

// Runs all blocks to the end. One call at a time in the process. Each error
// names the kernel.
//   InvalidArgument: a device would refuse the launch.
//   Internal: the kernel did something wrong, and which thread did, or that all
//   wait and at what. Then memory is as the kernel left it.
absl::Status Emulate(const Launch& launch, const EmulatorOptions& options);
absl::Status Emulate(const Launch& launch, uint64_t seed);

}  // namespace onestep

#endif  // ONESTEP_TESTS_CUDA_EMULATOR_EMULATOR_H_
