// SPDX-License-Identifier: Apache-2.0
// What this machine can do, for `bench` and `info` to compare with.
#ifndef ONESTEP_KERNELS_PROBE_H_
#define ONESTEP_KERNELS_PROBE_H_

#include <cstdint>

namespace onestep {

// The vector ISA the CPU kernels run with here: "avx3", "avx2", "neon", ...
// (Highway's name of the best target that was compiled in).
const char* CpuIsa();

// Runs `iterations` rounds of independent fused multiply-adds in registers
// and returns the FLOPs done. The caller times it, on as many threads as it
// wants to know about; the highest rate is the FMA peak.
double FmaLoop(int64_t iterations);

}  // namespace onestep

#endif  // ONESTEP_KERNELS_PROBE_H_
