// SPDX-License-Identifier: Apache-2.0
// Launchers of the kernels that measure a GPU (probe.cu): the cost of launches,
// barriers and exchanges between blocks. As for kernels.h, nvcc's build and the
// emulator's build both define them. The caller times a launch and divides by
// the number of rounds.
#ifndef ONESTEP_KERNELS_PROBE_LAUNCH_H_
#define ONESTEP_KERNELS_PROBE_LAUNCH_H_

#include <cstdint>

#include "kernels/launch.h"

namespace onestep::cuda {

// An empty kernel. With `waits` it uses programmatic dependent launch: it lets
// the next launch start at once and waits for the previous one.
Launch ProbeEmpty(bool waits);

// The body of a WHILE node: increments *count, which the caller sets to 0, and
// ends the loop when it reaches `iterations`.
Launch ProbeWhile(uint64_t handle, uint32_t* count, uint32_t iterations);

// `rounds` grid-wide barriers; the caller sets *counter to 0.
Launch ProbeGridBarrier(uint32_t* counter, int32_t rounds, int32_t blocks);

// `rounds` barriers of one cluster of `cluster` blocks.
Launch ProbeClusterBarrier(int32_t rounds, int32_t cluster);

// Each round sends 16 bytes from one block's shared memory to another block's
// and back: two hops.
Launch ProbePush(int32_t rounds);

// The same round trip between two blocks through two flags in global memory, in
// separate cache lines at flags[0] and flags[kProbeFlagStride]. The caller sets
// both to 0.
inline constexpr int kProbeFlagStride = 64;
Launch ProbeFlag(uint32_t* flags, int32_t rounds);

// y = x over n values. REQUIRES: n is a multiple of 4.
Launch ProbeCopy(const float* x, float* y, int64_t n);

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_PROBE_LAUNCH_H_
