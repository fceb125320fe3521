// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_BUNDLE_PROGRAM_H_
#define ONESTEP_TRAINER_SEARCH_BUNDLE_PROGRAM_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "trainer/data/dataset.h"
#include "trainer/search/bundle.h"

namespace onestep {

// The row numbers that programs read, in this order.
struct RowOrder {
  std::vector<int32_t> train;       // [train_rows] of an epoch
  std::vector<int32_t> validation;  // [validation_rows]
};

// The compiled steps that train and evaluate a bundle of `models` trials of
// one kind, whichever it is: each call binds the bundle's memory. Called by
// one thread at a time.
class BundleProgram {
 public:
  // Compiles the steps for whole batches and for what is left at the end of
  // the rows. `trial` is one of the kind. Unimplemented where so many models
  // cannot be in one step here. `data` and `order` outlive it.
  static absl::StatusOr<BundleProgram> Create(
      const CompileOptions& compile, const Trial& trial, int64_t models,
      const Dataset& data, const RowPlan& plan, const RowOrder& order);

  // Steps of the epoch, chunks of the validation rows: [first, first + count).
  absl::Status Train(Bundle& bundle, int64_t first, int64_t count) {
    return Run(train_, order_->train, bundle, bundle.trained, first, count);
  }
  absl::Status Evaluate(Bundle& bundle, int64_t first, int64_t count) {
    return Run(evaluate_, order_->validation, bundle, bundle.evaluated, first,
               count);
  }

  bool models_innermost() const { return models_innermost_; }
  // The step that most of an epoch runs.
  const Compiled& step() const {
    return train_.parts[train_.full > 0 ? 0 : 1].compiled;
  }

 private:
  struct Part {
    int64_t batch = 0;  // 0: there is none
    Compiled compiled;
  };
  // Units that follow each other: whole ones, then the tail.
  struct Steps {
    int64_t rows = 0;  // of a whole one
    int64_t full = 0;  // whole ones
    std::array<Part, 2> parts;
  };

  using GraphBuilder = absl::FunctionRef<absl::StatusOr<Graph>(int64_t batch)>;

  BundleProgram() = default;
  // Steps of `rows` of all the rows, and of what is left.
  static absl::StatusOr<Steps> CompileSteps(int64_t all_rows, int64_t rows,
                                            const Dataset& data,
                                            CompileOptions options,
                                            GraphBuilder build);
  static absl::Status Run(Steps& steps, const std::vector<int32_t>& order,
                          Bundle& bundle, Bundle::Results& results,
                          int64_t first, int64_t count);

  bool models_innermost_ = true;
  const RowOrder* order_ = nullptr;
  Steps train_, evaluate_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_BUNDLE_PROGRAM_H_
