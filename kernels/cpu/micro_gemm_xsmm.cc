// SPDX-License-Identifier: Apache-2.0
// The only file that includes libxsmm. Version 1.17 supports only alpha = 1 and
// beta = 0 or 1.
#include <libxsmm.h>

#include <limits>

#include "kernels/cpu/micro_gemm.h"

namespace onestep::cpu {

MicroGemm MakeMicroGemm(const MicroGemmShape& shape) {
  if (MicroGemmLibrary() == nullptr) return nullptr;
  constexpr int64_t kMost = std::numeric_limits<libxsmm_blasint>::max();
  if (shape.m > kMost || shape.n > kMost || shape.k > kMost) return nullptr;
  // libxsmm is column-major: it computes c^T = b^T a^T, [n,m] = [n,k] [k,m].
  const libxsmm_blasint n = static_cast<libxsmm_blasint>(shape.n);
  const libxsmm_blasint m = static_cast<libxsmm_blasint>(shape.m);
  const libxsmm_blasint k = static_cast<libxsmm_blasint>(shape.k);
  const libxsmm_blasint lda = n, ldb = shape.trans_a ? m : k, ldc = n;
  const float alpha = 1, beta = shape.accumulate ? 1 : 0;
  const int flags =
      shape.trans_a ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  return libxsmm_smmdispatch(n, m, k, &lda, &ldb, &ldc, &alpha, &beta, &flags,
                             /*prefetch=*/nullptr);
}

const char* MicroGemmLibrary() {
#if defined(__SANITIZE_THREAD__)
  return nullptr;
#else
  return "libxsmm " ONESTEP_XSMM_VERSION;
#endif
}

}  // namespace onestep::cpu
