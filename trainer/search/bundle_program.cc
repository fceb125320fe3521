// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/bundle_program.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "trainer/bind.h"

namespace onestep {
namespace {

constexpr int64_t kFloat = sizeof(float);

}  // namespace

absl::StatusOr<BundleProgram::Steps> BundleProgram::CompileSteps(
    int64_t all_rows, int64_t rows, const Dataset& data, CompileOptions options,
    GraphBuilder build) {
  Steps steps;
  steps.rows = rows;
  steps.full = all_rows / rows;
  steps.parts[0].batch = steps.full > 0 ? rows : 0;
  steps.parts[1].batch = all_rows % rows;
  for (Part& part : steps.parts) {
    if (part.batch == 0) continue;
    ASSIGN_OR_RETURN(Graph graph, build(part.batch));
    ASSIGN_OR_RETURN(part.compiled, Compile(std::move(graph), options));
    RETURN_IF_ERROR(BindData(*part.compiled.executable, data));
    options.dump_dir.clear();  // it shows the first
  }
  return steps;
}

absl::StatusOr<BundleProgram> BundleProgram::Create(
    const CompileOptions& compile, const Trial& trial, int64_t models,
    const Dataset& data, const RowPlan& plan, const RowOrder& order) {
  // Sgd without weight decay has a step of its own, and a faster one.
  OptimizerSpec optimizer = trial.optimizer;
  optimizer.hyper_inputs =
      optimizer.kind != OptimizerKind::kSgd || optimizer.weight_decay != 0;
  CompileOptions options = compile;
  options.vectorize.models = models > 1 ? models : 0;
  options.vectorize.inputs = HyperInputs(optimizer);
  options.vectorize.inputs.push_back("lr");
  BundleProgram program;
  program.order_ = &order;
  ASSIGN_OR_RETURN(program.train_,
                   CompileSteps(plan.train_rows, trial.batch, data, options,
                                [&](int64_t batch) {
                                  return BuildTrainStep(trial.model, optimizer,
                                                        data.rows, batch);
                                }));
  options.vectorize.inputs.clear();
  options.dump_dir.clear();  // and as Evaluator's
  options.sparse = {};
  options.cuda.tier = CudaTier::kAuto;
  ASSIGN_OR_RETURN(program.evaluate_,
                   CompileSteps(plan.validation_rows, RowPlan::kChunk, data,
                                options, [&](int64_t batch) {
                                  return BuildEvalStep(trial.model, data.rows,
                                                       batch);
                                }));
  program.models_innermost_ = program.step().executable->models_innermost();
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
