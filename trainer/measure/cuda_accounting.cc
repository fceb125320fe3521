// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/cuda_accounting.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace onestep {

absl::StatusOr<CudaAccounting> AccountForCalls(StepSession& session,
                                               CudaApi& cuda, int64_t steps,
                                               int64_t runs) {
  CudaAccounting accounting;
  const absl::StatusOr<std::unique_ptr<CudaCallCounter>> counter =
      cuda.CountCalls();
  if (!counter.ok()) {
    accounting.note = absl::StrCat(
        "the calls of CUDA are not counted, because CUPTI is missing or in "
        "use: ",
        counter.status().message());
    return accounting;
  }
  accounting.steps = steps * runs;
  const int64_t begin = NowNs();
  for (int64_t i = 0; i < runs; ++i) RETURN_IF_ERROR(session.Run(steps));
  accounting.us = 1e-3 * static_cast<double>(NowNs() - begin);
  accounting.calls = (*counter)->Stats();
  return accounting;
}

}  // namespace onestep
