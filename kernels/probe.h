// SPDX-License-Identifier: Apache-2.0
// The vector instruction set that the CPU kernels run with, and a loop whose
// rate is the peak that `bench` and `info` compare kernels with.
#ifndef ONESTEP_KERNELS_PROBE_H_
#define ONESTEP_KERNELS_PROBE_H_

#include <cstdint>

namespace onestep {

// The name of the vector instruction set that the CPU kernels run with on this
// machine: "AVX-512", "avx2", "sse2", "neon", "emu128" or "scalar". It is the
// best one that the CPU supports among those that were compiled in.
const char* CpuIsa();

// Whether that instruction set is AVX-512, with vectors of 64 bytes.
bool HasAvx512();

// Runs `iterations` rounds of independent fused multiply-adds in registers and
// returns the number of FLOPs. The caller times the call, on one thread or on
// several at once; the highest rate is the FMA peak.
double FmaLoop(int64_t iterations);

}  // namespace onestep

#endif  // ONESTEP_KERNELS_PROBE_H_
