// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "trainer/autotune.h"
#include "trainer/commands/commands.h"
#include "trainer/evaluate.h"
#include "trainer/graph_report.h"
#include "trainer/interrupt.h"
#include "trainer/json_text.h"
#include "trainer/load_data.h"
#include "trainer/measure/trace_file.h"
#include "trainer/model_file.h"
#include "trainer/output_dir.h"
#include "trainer/progress.h"
#include "trainer/report/report_page.h"
#include "trainer/report/train_report.h"
#include "trainer/status_line.h"
#include "trainer/train_loop.h"
#include "trainer/version.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const EpochResult& epoch,
            const std::optional<EvalResult>& validation) {
  Json json;
  json["epoch"] = epoch.epoch;
  json["loss"] = epoch.loss;
  json["train_accuracy"] = epoch.train_accuracy;
  json["validation_loss"] = nullptr;
  json["validation_accuracy"] = nullptr;
  if (validation) {
    json["validation_loss"] = validation->loss;
    json["validation_accuracy"] = validation->accuracy;
  }
  json["seconds"] = epoch.seconds;
  json["us_per_step"] = epoch.us_per_step;
  json["samples_per_second"] = epoch.samples_per_second;
  return json;
}

Json ToJson(const DeviceTraffic& traffic) {
  Json json;
  json["steps"] = traffic.steps;
  json["launches"] = traffic.launches;
  json["to_device_bytes"] = traffic.to_device_bytes;
  json["to_device_bytes_while_steps_ran"] = traffic.in_steps_bytes;
  json["to_host_bytes"] = traffic.to_host_bytes;
  json["copies"] = traffic.copies;
  return json;
}

std::string LossText(double loss) {
  return loss < 1e3 ? absl::StrFormat("%.4f", loss)
                    : absl::StrFormat("%.2e", loss);
}

class TrainCommand {
 public:
  TrainCommand(const Config& config, Console& console)
      : config_(config), console_(console) {}

  absl::Status Run();

 private:
  absl::Status Compile();
  absl::Status CreateOutput();
  absl::Status RunEpochs();
  absl::Status AfterEpoch(const EpochResult& epoch);
  absl::Status Save(const char* name);
  // From `begin_ns` to now, in the trace.
  void AddSpan(const std::string& name, int64_t begin_ns) {
    if (!config_.trace.empty()) trace_.AddSpan(name, begin_ns, NowNs());
  }
  absl::Status WriteTrace();
  absl::Status Report(const absl::Status& status);
  absl::Status WriteReport(const absl::Status& status,
                           const std::optional<EvalResult>& test);
  absl::Status Explain(const absl::Status& status) const;
  void PrintConfig();
  void PrintCompiled();
  std::string TrafficText() const;
  void PrintEpoch(const EpochResult& epoch,
                  const std::optional<EvalResult>& validation);
  std::string OutPath(const char* name) const {
    return (std::filesystem::path(config_.out) / name).string();
  }

  Config config_;
  Console& console_;
  TrainingData data_;
  AutoChoice auto_;
  std::unique_ptr<TrainLoop> loop_;
  std::unique_ptr<Evaluator> validation_, test_;
  std::unique_ptr<Progress> progress_;
  std::optional<LineLog> log_;
  TraceFile trace_;
  Json epochs_ = Json::array();
  int64_t epochs_done_ = 0;
  double best_accuracy_ = -1;
  int64_t best_epoch_ = 0;
};

absl::Status TrainCommand::Run() {
  if (!config_.out.empty()) {
    RETURN_IF_ERROR(CheckOutputDir(config_.out, config_.force));
    // Where trace and report may be to lie.
    if (!config_.trace.empty() || !config_.report.empty()) {
      RETURN_IF_ERROR(MakeFolder(config_.out));
    }
  }
  RETURN_IF_ERROR(CheckCanWrite(config_.trace));
  RETURN_IF_ERROR(CheckCanWrite(config_.report));
  ASSIGN_OR_RETURN(data_, LoadTrainingData(config_));
  ASSIGN_OR_RETURN(auto_, SettleAuto(config_, data_.train));
  if (!config_.json) PrintConfig();
  RETURN_IF_ERROR(Compile());
  if (!config_.json) PrintCompiled();
  if (!config_.out.empty()) RETURN_IF_ERROR(CreateOutput());
  CatchSignals();

  if (!config_.trace.empty()) loop_->TraceSteps(config_.trace_steps);
  const absl::Status status = RunEpochs();
  const bool stopped = status.code() == absl::StatusCode::kCancelled ||
                       status.code() == absl::StatusCode::kOutOfRange;
  if (!status.ok() && !stopped) return status;
  if (!config_.out.empty()) {
    const absl::Status saved = Save(kLastModelFile);
    if (!saved.ok()) {  // worse than that the run ended early
      if (!status.ok()) Console::Notice(Explain(status).message());
      return saved;
    }
  }
  return Report(status);
}

absl::Status TrainCommand::Compile() {
  RETURN_IF_ERROR(CreateDumpDir(config_.compile.dump_dir));
  const Split& split = data_.split;
  ASSIGN_OR_RETURN(loop_,
                   TrainLoop::Create(config_, data_.train, split.train_rows));
  // A chain evaluates: a team is for many steps one after the other.
  CompileOptions evaluate = config_.compile;
  if (evaluate.dispatch == Dispatch::kSingle) {
    evaluate.dispatch =
        evaluate.device == Device::kGpu ? Dispatch::kGraph : Dispatch::kOps;
  }
  if (split.validation_rows > 0) {
    ASSIGN_OR_RETURN(
        validation_,
        Evaluator::Create(config_.model, evaluate, data_.train, loop_->params(),
                          {split.train_rows, split.validation_rows}));
  }
  ASSIGN_OR_RETURN(test_,
                   Evaluator::Create(config_.model, evaluate, data_.test,
                                     loop_->params(), {0, data_.test.rows}));
  RETURN_IF_ERROR(WriteCudaGraph(config_.cuda_graph, loop_->step()));
  progress_ =
      std::make_unique<Progress>(config_.epochs, loop_->steps_per_epoch());
  return absl::OkStatus();
}

absl::Status TrainCommand::CreateOutput() {
  RETURN_IF_ERROR(CreateOutputDir(config_.out));
  RETURN_IF_ERROR(WriteTextFile(OutPath("config.json"),
                                JsonText(ConfigToJson(config_), 2)));
  RETURN_IF_ERROR(
      WriteTextFile(OutPath("graph.txt"), GraphText(loop_->step())));
  ASSIGN_OR_RETURN(log_, LineLog::Create(OutPath("log.jsonl")));
  return absl::OkStatus();
}

absl::Status TrainCommand::RunEpochs() {
  for (int64_t epoch = 1; epoch <= config_.epochs; ++epoch) {
    const auto poll = [this, epoch](int64_t steps, double loss) {
      progress_->Update(epoch, steps, loss);
      return PendingSignal() == 0;
    };
    const int64_t begin = NowNs();
    absl::StatusOr<EpochResult> result = loop_->RunEpoch(epoch, poll);
    AddSpan(absl::StrCat("epoch ", epoch), begin);
    progress_->Clear();
    RETURN_IF_ERROR(result.status());
    epochs_done_ = epoch;
    RETURN_IF_ERROR(AfterEpoch(*result));
    if (PendingSignal() != 0) return absl::CancelledError("stopped");
    if (config_.patience > 0 && epoch - best_epoch_ >= config_.patience) {
      if (!config_.json) {
        console_.Print(
            absl::StrCat("stopped: no better validation accuracy since epoch ",
                         best_epoch_, "\n"));
      }
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status TrainCommand::AfterEpoch(const EpochResult& epoch) {
  std::optional<EvalResult> validation;
  if (validation_ != nullptr) {
    const int64_t begin = NowNs();
    ASSIGN_OR_RETURN(validation, validation_->Run());
    AddSpan("validate", begin);
  }
  const Json json = ToJson(epoch, validation);
  epochs_.push_back(json);
  if (!config_.json) PrintEpoch(epoch, validation);
  // Without validation rows the last model is as good a best as any.
  const bool better = !validation || validation->accuracy > best_accuracy_;
  if (better) {
    best_accuracy_ = validation ? validation->accuracy : 0;
    best_epoch_ = epoch.epoch;
  }
  if (config_.out.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(log_->Append(JsonText(json)));
  return better ? Save(kBestModelFile) : absl::OkStatus();
}

absl::Status TrainCommand::WriteTrace() {
  if (!loop_->trace_refused().empty()) {
    Console::Notice(
        absl::StrCat("--trace: no steps: ", loop_->trace_refused()));
  }
  trace_.AddCompile("compile", loop_->step());
  if (const Compiled* const tail = loop_->tail_step();
      tail != nullptr && tail != &loop_->step()) {
    trace_.AddCompile("compile the last batch's step", *tail);
  }
  trace_.AddSteps(loop_->step(), loop_->traces(), config_.trace_steps);
  return trace_.Write(config_.trace);
}

absl::Status TrainCommand::Save(const char* name) {
  return WriteModel(OutPath(name), config_.model, loop_->params(),
                    {epochs_done_, loop_->steps_done(), config_.seed});
}

// `status`: ok, or why the run ended early; then the test set is left out.
absl::Status TrainCommand::Report(const absl::Status& status) {
  std::optional<EvalResult> test;
  if (status.ok()) {
    ASSIGN_OR_RETURN(test, test_->Run());
  }
  if (config_.json) {
    const Executable& executable = *loop_->step().executable;
    Json json;
    json["config"] = ConfigToJson(config_);
    json["compile_ms"] = loop_->compile_ms();
    json["epochs"] = epochs_;
    json["test_accuracy"] = nullptr;
    json["test_loss"] = nullptr;
    if (test) {
      json["test_accuracy"] = test->accuracy;
      json["test_loss"] = test->loss;
    }
    json["dispatch"] = NameOf(loop_->step().dispatch);
    json["density"] = auto_.density;
    json["auto"] = nullptr;
    if (!auto_.candidates.empty()) {
      json["auto"] = FlagsOf(auto_.candidates[0]);
    }
    json["lowering"] = executable.lowering();
    if (const auto traffic = executable.traffic()) {
      json["device_traffic"] = ToJson(*traffic);
    }
    if (config_.print_plan) json["plan"] = executable.plan();
    console_.Print(absl::StrCat(JsonText(json, 2), "\n"));
  } else if (test) {
    console_.Print(TrafficText());
    console_.Print(absl::StrFormat("test accuracy %.4f, loss %s (%d rows)\n",
                                   test->accuracy, LossText(test->loss),
                                   test->rows));
  }
  absl::Status result = status.ok() ? status : Explain(status);
  if (!config_.trace.empty()) result.Update(WriteTrace());
  // Who stops a run does not wait for what the page has measured.
  if (!config_.report.empty()) {
    absl::Status report = absl::CancelledError("stopped");
    if (PendingSignal() == 0) report = WriteReport(status, test);
    if (absl::IsCancelled(report)) {
      Console::Notice(absl::StrCat(config_.report, " is not written"));
    }
    result.Update(report);
  }
  return result;
}

absl::Status TrainCommand::WriteReport(const absl::Status& status,
                                       const std::optional<EvalResult>& test) {
  console_.Flush();
  FinishedRun run;
  run.epochs = epochs_;
  run.ended = std::string(status.message());
  if (test) {
    run.test = {{"accuracy", test->accuracy},
                {"loss", test->loss},
                {"rows", test->rows}};
  }
  Config config = config_;
  // Dispatch was left to the step, where only one can run it.
  config.compile.dispatch = loop_->step().dispatch;
  const StatusLine line("report");
  ASSIGN_OR_RETURN(const Json report, TrainReport(config, data_, run,
                                                  [&](const std::string& text) {
                                                    line.Show(text);
                                                  }));
  line.Clear();
  RETURN_IF_ERROR(WriteTextFile(config_.report, ReportPage(report)));
  if (!config_.json) {
    console_.Print(absl::StrCat("report: ", config_.report, "\n"));
  }
  return absl::OkStatus();
}

// What the whole batches' steps asked of a GPU.
std::string TrainCommand::TrafficText() const {
  const std::optional<DeviceTraffic> traffic =
      loop_->step().executable->traffic();
  if (!traffic || traffic->steps == 0) return "";
  return absl::StrFormat(
      "gpu: %d steps in %d launches; host to device %.1f bytes per step while "
      "steps ran, %d bytes in all; device to host %d bytes\n",
      traffic->steps, traffic->launches,
      static_cast<double>(traffic->in_steps_bytes) /
          static_cast<double>(traffic->steps),
      traffic->to_device_bytes, traffic->to_host_bytes);
}

absl::Status TrainCommand::Explain(const absl::Status& status) const {
  std::string message(status.message());
  std::string kept = "the weights before that are in ";
  if (status.code() == absl::StatusCode::kCancelled) {
    message = absl::StrCat(PendingSignal() == SIGTERM ? "terminated by SIGTERM"
                                                      : "interrupted by SIGINT",
                           " after ", loop_->steps_done(), " steps, ",
                           epochs_done_, " whole epochs");
    kept = "the weights are in ";
  }
  if (!config_.out.empty()) {
    absl::StrAppend(&message, "; ", kept, OutPath(kLastModelFile));
  }
  return absl::Status(status.code(), message);
}

void TrainCommand::PrintConfig() {
  console_.Print(absl::StrFormat(
      "onestep %s\n%s  %-13s %d train, %d validation, %d test\n"
      "  %-13s %d\n"
      "  %-13s %.1f %% of the input's values are not zero\n%s",
      Version(), ConfigTable(config_), "rows", data_.split.train_rows,
      data_.split.validation_rows, data_.test.rows, "parameters",
      config_.model.num_parameters(), "density", 100 * auto_.density,
      AutoText(auto_)));
  console_.Flush();
}

void TrainCommand::PrintCompiled() {
  const Executable& executable = *loop_->step().executable;
  console_.Print(absl::StrFormat(
      "compiled in %.1f ms: %s, %d %s per step, %d steps per epoch%s\n",
      loop_->compile_ms(), executable.lowering(), executable.dispatches(),
      executable.dispatches() == 1 ? "dispatch" : "dispatches",
      loop_->steps_per_epoch(),
      loop_->tail_batch() == 0
          ? ""
          : absl::StrCat(", the last of ", loop_->tail_batch(), " rows")));
  if (loop_->step().cuda) {
    for (const std::string& note : loop_->step().cuda->notes) {
      console_.Print(absl::StrCat("  refused: ", note, "\n"));
    }
  }
  if (config_.print_plan) console_.Print(executable.plan());
  console_.Print(
      "epoch      loss     train  validation   seconds  samples/s   us/step\n");
  console_.Flush();
}

void TrainCommand::PrintEpoch(const EpochResult& epoch,
                              const std::optional<EvalResult>& validation) {
  console_.Print(absl::StrFormat(
      "%5d  %8s  %8.4f  %10s  %8.3f  %9.0f  %8.1f\n", epoch.epoch,
      LossText(epoch.loss), epoch.train_accuracy,
      validation ? absl::StrFormat("%.4f", validation->accuracy) : "-",
      epoch.seconds, epoch.samples_per_second, epoch.us_per_step));
  console_.Flush();
}

}  // namespace

absl::Status RunTrain(const Config& config, Console& console) {
  return TrainCommand(config, console).Run();
}

}  // namespace onestep
