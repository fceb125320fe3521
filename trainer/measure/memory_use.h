// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_MEMORY_USE_H_
#define ONESTEP_TRAINER_MEASURE_MEMORY_USE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "nlohmann/json.hpp"
#include "trainer/model.h"

namespace onestep {

// Bytes of memory that a training run holds, by what lies in them:
//   weights          also the copies that a team's workers or a GPU work on
//   gradients        0 where they are added to the weights as they are made
//   optimizer state  likewise with the copies
//   activations      everything else that a step computes
//   data             the table of rows, labels, order, and a step's scalars
//   other            the weights and state before a slice, to go back to when
//                    a loss is not finite; scratch; exchanges between workers
// Left out are the program itself, its libraries' own buffers, and the step
// for the short last batch of an epoch and the evaluation's, which are smaller.
struct MemoryUse {
  std::vector<std::pair<std::string, int64_t>> kinds;  // in this order
  int64_t arena_bytes = 0;       // the executable's: within several of them
  int64_t available_bytes = -1;  // here and now; -1: not known
  int64_t total_bytes() const;
};

// Of a run that trains `model` on `train_rows` of a table of `rows` by the
// compiled step. Counted from the plan: nothing is run.
absl::StatusOr<MemoryUse> EstimateMemory(const ModelSpec& model,
                                         const OptimizerSpec& optimizer,
                                         Compiled& compiled, int64_t rows,
                                         int64_t train_rows, int64_t batch);

nlohmann::ordered_json ToJson(const MemoryUse& memory);
// A line per kind, indented by two, and what is available beside the total.
std::string ToText(const MemoryUse& memory);
// "3.2 MiB".
std::string BytesText(int64_t bytes);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_MEMORY_USE_H_
