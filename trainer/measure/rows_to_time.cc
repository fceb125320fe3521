// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/rows_to_time.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "trainer/load_data.h"
#include "trainer/measure/step_bench.h"

namespace onestep {

absl::StatusOr<Dataset> RowsToTime(const Config& config, int64_t batch) {
  if (config.data.empty()) return BenchRows(config.model, batch);
  ASSIGN_OR_RETURN(Dataset data,
                   LoadSubset(config, Subset::kTrain, config.model.classes()));
  if (data.features != config.model.features()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model: want ", data.features, " features, as ",
                     data.source, " has, got ", config.model.features()));
  }
  if (batch > data.rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch: want at most ", data.rows, ", the rows of ",
                     data.source, ", got ", batch));
  }
  return data;
}

}  // namespace onestep
