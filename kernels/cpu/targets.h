// SPDX-License-Identifier: Apache-2.0
// The instruction sets that the CPU kernels are compiled for: the baseline of
// the architecture (one lane, or 128 bits), AVX2 and AVX-512. CPUs with SSE4
// but no AVX2 are too rare to pay for in compile time. Included before any
// other header of Highway.
#ifndef ONESTEP_KERNELS_CPU_TARGETS_H_
#define ONESTEP_KERNELS_CPU_TARGETS_H_

// The bits below AVX3's are its successors on x86, known to this Highway or a
// later one: nothing here gains from them. SVE has no vectors of constant
// size, which the register tiles need.
#define HWY_DISABLED_TARGETS                                                  \
  ((HWY_AVX3 - 1) | HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128)

#include "hwy/targets.h"  // IWYU pragma: export

#endif  // ONESTEP_KERNELS_CPU_TARGETS_H_
