// SPDX-License-Identifier: Apache-2.0
// Launchers of the kernels that measure a GPU (probe.cu): what launches,
// barriers and exchanges between blocks cost. Two builds have them, as with
// kernels.h. Each is timed from outside, over its rounds.
#ifndef ONESTEP_KERNELS_PROBE_LAUNCH_H_
#define ONESTEP_KERNELS_PROBE_LAUNCH_H_

#include <cstdint>

#include "kernels/launch.h"

namespace onestep::cuda {

// Does nothing. `waits`: lets the next one start at once and waits for the one
// before it.
Launch ProbeEmpty(bool waits);

// The body of a WHILE node: ends it when *count, 0 at first, is `iterations`.
Launch ProbeWhile(uint64_t handle, uint32_t* count, uint32_t iterations);

// Barriers of all blocks; *counter is 0 at first.
Launch ProbeGridBarrier(uint32_t* counter, int32_t rounds, int32_t blocks);

// Barriers of one cluster.
Launch ProbeClusterBarrier(int32_t rounds, int32_t cluster);

// 16 bytes there and back between the shared memories of two blocks: two hops
// a round.
Launch ProbePush(int32_t rounds);

// The same between two blocks by flags[2] in global memory, 0 at first and in
// cache lines of their own: flags + 0 and flags + kProbeFlagStride.
inline constexpr int kProbeFlagStride = 64;
Launch ProbeFlag(uint32_t* flags, int32_t rounds);

// y = x; n is a multiple of 4.
Launch ProbeCopy(const float* x, float* y, int64_t n);

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_PROBE_LAUNCH_H_
