// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_KERNELS_CPU_MICRO_GEMM_H_
#define ONESTEP_KERNELS_CPU_MICRO_GEMM_H_

#include <cstdint>

namespace onestep::cpu {

// Matmul kernels that a library makes at run time, each for one shape:
// c[m,n] = a b, or c += a b; fp32, row-major, dense.
struct MicroGemmShape {
  int64_t m, n, k;
  bool trans_a;  // a is stored [k,m], else [m,k]; b is [k,n]
  bool accumulate;
};

// A kernel of the library; not owned, callable from any thread, for as long as
// the process lives. a, b and c must not overlap.
using MicroGemm = void (*)(const float* b, const float* a, float* c, ...);

// nullptr: there is no library, or it makes none for this shape.
MicroGemm MakeMicroGemm(const MicroGemmShape& shape);

// "libxsmm 1.17"; nullptr when the kernels are built without it, or under
// ThreadSanitizer, which cannot see what made code does.
const char* MicroGemmLibrary();

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_MICRO_GEMM_H_
