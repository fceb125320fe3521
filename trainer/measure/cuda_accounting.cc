// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/cuda_accounting.h"

#include "absl/strings/str_format.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/cuda/cupti_accounting.h"

namespace onestep {

absl::StatusOr<std::vector<CudaAccounting>> AccountForCalls(
    StepSession& session, TimedCuda& timed, int64_t steps, int64_t runs) {
  const auto run = [&](CudaAccounting& accounting) -> absl::Status {
    accounting.steps = steps * runs;
    const int64_t begin = NowNs();
    for (int64_t i = 0; i < runs; ++i) RETURN_IF_ERROR(session.Run(steps));
    accounting.us = 1e-3 * static_cast<double>(NowNs() - begin);
    return absl::OkStatus();
  };
  std::vector<CudaAccounting> accounts(2);
  CudaAccounting& timers = accounts[0];
  timers.source = absl::StrFormat("timers around each call, %.0f ns of each",
                                  1e3 * timed.cost_us());
  timed.Reset();
  RETURN_IF_ERROR(run(timers));
  timers.calls = timed.Stats();

  CudaAccounting& cupti = accounts[1];
  cupti.source = "CUPTI, which slows each call";
  const auto counting = CuptiAccounting::Create();
  if (!counting.ok()) {
    cupti.note = std::string(counting.status().message());
    return accounts;
  }
  RETURN_IF_ERROR(run(cupti));
  cupti.calls = (*counting)->Stats();
  return accounts;
}

}  // namespace onestep
