// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/bundle_program.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/status.h"
#include "trainer/bind.h"

namespace onestep {
namespace {

constexpr int64_t kFloat = sizeof(float);

}  // namespace

absl::StatusOr<BundleProgram> BundleProgram::Create(
    const CompileOptions& compile, const Trial& trial, int64_t models,
    const Dataset& data, const RowPlan& plan, const RowOrder& order) {
  if (models > 1) return absl::UnimplementedError("many models in one step");
  BundleProgram program;
  program.order_ = &order;
  const auto add = [&](Steps& steps, int64_t rows_of_all, int64_t rows,
                       const CompileOptions& options) -> absl::Status {
    steps.rows = rows;
    steps.full = rows_of_all / rows;
    steps.parts[0].batch = steps.full > 0 ? rows : 0;
    steps.parts[1].batch = rows_of_all % rows;
    for (Part& part : steps.parts) {
      if (part.batch == 0) continue;
      ASSIGN_OR_RETURN(Graph graph,
                       &steps == &program.train_
                           ? BuildTrainStep(trial.model, trial.optimizer,
                                            data.rows, part.batch)
                           : BuildEvalStep(trial.model, data.rows, part.batch));
      ASSIGN_OR_RETURN(part.compiled, Compile(std::move(graph), options));
      RETURN_IF_ERROR(BindData(*part.compiled.executable, data));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(add(program.train_, plan.train_rows, trial.batch, compile));
  CompileOptions quiet = compile;  // as Evaluator's
  quiet.dump_dir.clear();
  quiet.sparse = {};
  quiet.cuda.tier = CudaTier::kAuto;
  RETURN_IF_ERROR(
      add(program.evaluate_, plan.validation_rows, RowPlan::kChunk, quiet));
  return program;
}

absl::Status BundleProgram::Run(Steps& steps, const std::vector<int32_t>& order,
                                Bundle& bundle, Bundle::Results& results,
                                int64_t first, int64_t count) {
  const int64_t models = bundle.models();
  const int64_t full = std::clamp<int64_t>(steps.full - first, 0, count);
  for (const int64_t units : {full, count - full}) {
    if (units == 0) continue;
    Part& part = steps.parts[first < steps.full ? 0 : 1];
    Executable& executable = *part.compiled.executable;
    // Values that advance by `each` floats a unit; those the graph has.
    const auto bind = [&](const std::string& name, float* values,
                          int64_t each) {
      if (part.compiled.graph.FindLeaf(name) == nullptr) {
        return absl::OkStatus();
      }
      return executable.Bind(name, values + first * each, each * kFloat);
    };
    for (const Bundle::Value& tensor : bundle.tensors()) {
      RETURN_IF_ERROR(bind(tensor.name, tensor.data, 0));
    }
    RETURN_IF_ERROR(bind("momentum", bundle.momentums.data(), 0));
    RETURN_IF_ERROR(bind("weight_decay", bundle.weight_decays.data(), 0));
    RETURN_IF_ERROR(bind("lr", bundle.lrs.data(), models));
    RETURN_IF_ERROR(bind("step", bundle.step_numbers.data(), 1));
    // Every unit before this one had whole batches.
    RETURN_IF_ERROR(executable.Bind(
        "indices", const_cast<int32_t*>(order.data()) + first * steps.rows,
        part.batch * kFloat));
    RETURN_IF_ERROR(executable.Bind(
        "loss", results.losses.data() + first * models, models * kFloat));
    RETURN_IF_ERROR(executable.Bind(
        "correct", results.corrects.data() + first * models, models * kFloat));
    executable.ParamsChanged();
    RETURN_IF_ERROR(executable.Run(units));
    RETURN_IF_ERROR(executable.ParamsToHost());
    first += units;
  }
  return absl::OkStatus();
}

}  // namespace onestep
