// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_KERNELS_CPU_MICRO_GEMM_H_
#define ONESTEP_KERNELS_CPU_MICRO_GEMM_H_

#include <cstdint>

namespace onestep::cpu {

// Matmul kernels that a library (libxsmm) generates at run time, each for one
// shape: c[m,n] = a b, or c += a b with `accumulate`. All tensors are fp32,
// row-major and dense.
struct MicroGemmShape {
  int64_t m, n, k;
  bool trans_a;  // a is stored [k,m], else [m,k]; b is [k,n]
  bool accumulate;
};

// A generated kernel. The library owns it; it is valid until the process ends
// and callable from any thread. REQUIRES: c does not overlap a or b.
using MicroGemm = void (*)(const float* b, const float* a, float* c, ...);

// Returns nullptr when there is no library or it has no kernel for this shape.
MicroGemm MakeMicroGemm(const MicroGemmShape& shape);

// "libxsmm 1.17"; nullptr when the kernels are built without the library, or
// with ThreadSanitizer, which cannot instrument generated code.
const char* MicroGemmLibrary();

}  // namespace onestep::cpu

#endif  // ONESTEP_KERNELS_CPU_MICRO_GEMM_H_
