// SPDX-License-Identifier: Apache-2.0
// The instruction sets that the CPU kernels are compiled for: the baseline of
// the architecture (scalar or 128 bits), AVX2 and AVX-512. CPUs with SSE4 but
// without AVX2 are too rare to be worth the compile time. This file must be
// included before any other header of Highway.
#ifndef ONESTEP_KERNELS_CPU_TARGETS_H_
#define ONESTEP_KERNELS_CPU_TARGETS_H_

// HWY_AVX3 is Highway's name for AVX-512. The bits below it are its successors
// on x86, in this and later versions of Highway; the kernels gain nothing from
// them. SVE is disabled because the register tiles need vectors of constant
// size.
#define HWY_DISABLED_TARGETS                                                  \
  ((HWY_AVX3 - 1) | HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128)

#include "hwy/targets.h"  // IWYU pragma: export

#endif  // ONESTEP_KERNELS_CPU_TARGETS_H_
