// SPDX-License-Identifier: Apache-2.0
#include "trainer/flags.h"

#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status.h"
#include "runtime/cpu/cpu_info.h"
#include "trainer/exit_code.h"
#include "trainer/flag_rules.h"
#include "trainer/flag_set.h"
#include "trainer/gpu_flags.h"
#include "trainer/numbers.h"
#include "trainer/search_flags.h"
#include "trainer/vectors_flags.h"
#include "trainer/word2vec/graph_flags.h"
#include "trainer/word2vec_flags.h"

namespace onestep {
namespace {

constexpr int64_t kMaxBatch = 1 << 20;
constexpr int64_t kMaxEpochs = 1'000'000;
constexpr int64_t kMaxSteps = 1'000'000'000;
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxModels = 1 << 20;
constexpr int64_t kMaxSamples = 1'000'000;
constexpr int64_t kMaxProcesses = 1000;
constexpr int64_t kMaxTraceSteps = 10'000;
constexpr int64_t kLeastProfiledSteps = 1000;
constexpr int64_t kMaxProfiledSteps = 1'000'000;

constexpr char kUsage[] =
    "Trains small neural networks, each train step compiled.\n"
    "\n"
    "  trainer [train] [flags]                    train a model (no verb: "
    "this)\n"
    "  trainer eval MODEL [flags]                 accuracy, confusion matrix\n"
    "  trainer predict MODEL [IMAGES] [flags]     a label per image\n"
    "  trainer graph|bench|info [flags]           see the step, time it, see "
    "the machine\n"
    "  trainer profile|sweep|advise [flags]       where the time goes; which "
    "batch; which flags\n"
    "  trainer search [flags]                     find the best of many\n"
    "  trainer word2vec CORPUS [flags]            train word vectors\n"
    "  trainer nearest MODEL WORD...              words like these\n"
    "  trainer analogy MODEL A B C                A is to B as C is to?\n"
    "  trainer word2vec-eval MODEL [flags]        how good word vectors are\n"
    "  trainer probe [--json]                     what a GPU's launches "
    "cost\n"
    "  trainer VERB --help                        the flags of a verb\n";

std::string PassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : AllPasses()) names.push_back(pass.name);
  return absl::StrJoin(names, ", ");
}

// The flags of one verb, and which of them go together.
class Flags {
 public:
  explicit Flags(Verb verb);
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  absl::StatusOr<CommandLine> Parse(std::vector<std::string> args);
  std::optional<bool> TakesValue(const std::string& flag) const {
    return flags_.TakesValue(flag);
  }

 private:
  void AddData();
  void AddModel();
  void AddOptimizer();
  void AddTraining();
  void AddMeasuring();
  void AddCompile();
  void AddModelFile();
  void AddOutput();

  absl::Status SetPasses(const std::string& text);
  absl::Status SetThreads(const std::string& text);
  bool IsOneOf(std::initializer_list<Verb> verbs) const {
    return std::find(verbs.begin(), verbs.end(), config_.verb) != verbs.end();
  }
  bool Given(const std::string& flag) const { return flags_.Given(flag); }
  absl::Status CheckFiles();

  Config config_;
  std::vector<std::string> files_;  // positional
  FlagSet flags_;
};

Flags::Flags(Verb verb)
    : flags_(absl::StrCat("trainer ", NameOf(verb)), kUsage, ExitCodeHelp()) {
  config_.verb = verb;
  config_.compile.threads = DefaultThreads();
  const bool builds = !IsOneOf({Verb::kEval, Verb::kPredict});
  if (IsOneOf({Verb::kGraph, Verb::kBench, Verb::kProfile, Verb::kAdvise})) {
    config_.model.widths = {784, 128, 10};
  }
  if (IsOneOf({Verb::kGraph, Verb::kProfile})) {  // nothing is timed to choose
    config_.input = InputMode::kDense;
  }
  if (verb == Verb::kSweep) {
    config_.batches = {32, 64, 128, 256, 512, 1024, 2048, 4096};
    config_.epochs = 1;
  }
  if (UsesVectors(verb)) {
    AddVectors(config_, flags_, &files_);
  } else if (verb == Verb::kWord2vec) {
    AddWord2vec(config_, flags_, &files_);
    AddCompile();
  } else if (!IsOneOf({Verb::kInfo, Verb::kProbe})) {
    if (!IsOneOf({Verb::kGraph, Verb::kAdvise})) AddData();
    if (verb == Verb::kSearch) {
      AddSearchSpace(config_, flags_);
    } else if (builds) {
      AddModel();
      AddOptimizer();
    }
    if (IsOneOf({Verb::kTrain, Verb::kSweep, Verb::kSearch})) AddTraining();
    if (verb == Verb::kSearch) AddSearchRun(config_, flags_);
    AddMeasuring();
    if (!builds) AddModelFile();
    AddCompile();
  }
  AddOutput();
}

void Flags::AddData() {
  flags_.Group("Data");
  flags_.Text(
      "--data", "DIR", &config_.data,
      IsOneOf({Verb::kBench, Verb::kProfile})
          ? "Folder of IDX files whose train rows are used [random rows, a "
            "fifth of their values not 0]"
          : "Folder of IDX files, plain or .gz [$ONESTEP_DATA, ./data, the "
            "system's Fashion-MNIST, a built-in set]");
}

void Flags::AddModel() {
  flags_.Group("Model");
  flags_.Value(
      "--model", "WIDTHS",
      config_.model.widths.empty()
          ? "Layer widths [features-128-10, e.g. 784-128-10]"
          : absl::StrCat("Layer widths [", config_.model.ToString(), "]"),
      [this](const std::string& text) -> absl::Status {
        ASSIGN_OR_RETURN(config_.model.widths, ParseWidths(text));
        return absl::OkStatus();
      });
  flags_.Choice("--activation", &config_.model.activation,
                "Of the hidden layers");
  flags_.Choice("--loss", &config_.model.loss, "What is minimised");
  if (!IsOneOf({Verb::kTrain, Verb::kSweep})) return;
  flags_.Choice("--init", &config_.init, "How weights are drawn");
  flags_.Unsigned("--seed", &config_.seed, "Of weights and shuffling [1]");
  flags_.Unsigned("--shuffle-seed", &config_.shuffle_seed,
                  "Of shuffling alone [--seed]");
}

void Flags::AddOptimizer() {
  flags_.Group("Optimizer");
  flags_.Choice("--optimizer", &config_.optimizer.kind,
                "How weights are updated");
  flags_.Number("--momentum", &config_.optimizer.momentum, 0, 1,
                "Of --optimizer momentum");
  flags_.Switch("--nesterov", &config_.optimizer.nesterov,
                "Nesterov's form of momentum");
  flags_.Number("--weight-decay", &config_.optimizer.weight_decay, 0, FLT_MAX,
                "L2; for adamw decoupled");
  if (config_.verb == Verb::kBench) {
    flags_.Integers("--batch", &config_.batches, 1, kMaxBatch,
                    "Rows of a step, one measurement each");
  } else if (config_.verb == Verb::kSweep) {
    flags_.Integers("--batches", &config_.batches, 1, kMaxBatch,
                    "Rows of a step, a row of the table each");
  } else if (config_.verb == Verb::kAdvise) {
    flags_.Value("--batch", "N",
                 "Rows of a step [the smallest whose epoch is nearly as short "
                 "as the shortest]",
                 [this](const std::string& text) -> absl::Status {
                   ASSIGN_OR_RETURN(config_.batch,
                                    ParseInteger(text, 1, kMaxBatch));
                   return absl::OkStatus();
                 });
  } else {
    flags_.Integer("--batch", &config_.batch, 1, kMaxBatch, "Rows of a step");
  }
}

// What is measured, and how often.
void Flags::AddMeasuring() {
  flags_.Group("Measurement");
  switch (config_.verb) {
    case Verb::kBench:
      flags_.Integer("--samples", &config_.samples, 2, kMaxSamples,
                     "How often each step is timed, over all processes");
      flags_.Integer("--processes", &config_.processes, 1, kMaxProcesses,
                     "Starts of the program that share the samples");
      flags_.Text("--compare", "FILE", &config_.compare_file,
                  "What an earlier bench --json printed, to compare with");
      flags_.Value("--gate", "X%",
                   "With --compare: fail (exit 7) where a step is surely "
                   "slower than then by more than this",
                   [this](const std::string& text) -> absl::Status {
                     ASSIGN_OR_RETURN(config_.gate, ParsePercent(text, 1000));
                     return absl::OkStatus();
                   });
      break;
    case Verb::kProfile:
      flags_.Integer("--steps", &config_.profile_steps, kLeastProfiledSteps,
                     kMaxProfiledSteps,
                     "Steps that are profiled at least, after warm-up");
      flags_.Switch("--compare", &config_.compare_fusion,
                    "Show the step unfused and fused side by side");
      break;
    case Verb::kSweep:
      flags_.Choices("--devices", &config_.devices, "Where to run [cpu]");
      flags_.Text(
          "--peers", "FILE|PROGRAM", &config_.peers,
          "Columns of other libraries: a compare.json, or bench/compare "
          "itself, which is then run");
      break;
    case Verb::kAdvise:
      flags_.Integer("--rows", &config_.rows, 1, int64_t{1} << 40,
                     "Rows of an epoch");
      flags_.Number("--density", &config_.density, 0, 1,
                    "Share of the input's values that are not zero");
      flags_.Switch("--check", &config_.check,
                    "Measure the advised step too, and say how far off it was");
      break;
    default:
      break;
  }
}

void Flags::AddTraining() {
  if (config_.verb != Verb::kSearch) {
    flags_.Number("--lr", &config_.lr, FLT_MIN, FLT_MAX, "Learning rate");
  }
  flags_.Choice(
      "--lr-schedule", &config_.lr_schedule,
      "Of the rate: cosine falls to 0; step to a tenth at 1/2 of the run "
      "and a hundredth at 3/4");
  flags_.Integer("--warmup", &config_.warmup, 0, kMaxSteps,
                 "Steps in which the rate rises from 0");
  flags_.Group("Run");
  flags_.Integer("--epochs", &config_.epochs, 1, kMaxEpochs,
                 "Passes over the data");
  flags_.Number("--validation", &config_.validation, 0, 0.99,
                "Share of the train rows, the last ones, kept for validation");
  if (config_.verb != Verb::kTrain) return;
  flags_.Integer(
      "--patience", &config_.patience, 0, kMaxEpochs,
      "Stop after N epochs without a better validation accuracy; 0: never");
  flags_.Group("Output");
  flags_.Text(
      "--out", "DIR", &config_.out,
      "Save model.safetensors, best.safetensors, config.json, log.jsonl and "
      "graph.txt there");
  flags_.Switch("--force", &config_.force,
                "Remove an earlier run from --out first");
  flags_.Text("--report", "FILE", &config_.report,
              "Write a page with curves, the profile, the graph and a sweep of "
              "batches there, as HTML");
}

void Flags::AddOutput() {
  flags_.Group("Output");
  if (config_.verb == Verb::kGraph) {
    flags_.Choice("--format", &config_.graph_format,
                  "All of it as text, or the final graph for or by Graphviz");
    flags_.Integer("--models", &config_.compile.vectorize.models, 0, kMaxModels,
                   "Of the step that trains so many models at once; 0: of one");
    AddWindowGraph(config_, flags_);
    return;
  }
  if (IsOneOf({Verb::kTrain, Verb::kProfile})) {
    flags_.Text("--trace", "FILE", &config_.trace,
                "Write passes and calls of the first steps there, for "
                "ui.perfetto.dev or chrome://tracing");
    flags_.Integer("--trace-steps", &config_.trace_steps, 1, kMaxTraceSteps,
                   "Steps of --trace, of whole batches");
  }
  flags_.Switch("--json", &config_.json,
                "Print one JSON object instead of text");
}

void Flags::AddModelFile() {
  const bool predicts = config_.verb == Verb::kPredict;
  flags_.Group("Model");
  flags_.Positional(&files_, predicts ? "MODEL [IMAGES]" : "MODEL",
                    predicts
                        ? "MODEL and IDX images [the test images of --data]"
                        : "MODEL, a .safetensors file or a folder of --out");
  flags_.Text("--model-file", "FILE", &config_.model_file, "MODEL as a flag");
  flags_.Group("Data");
  if (predicts) {
    flags_.Text("--images", "FILE", &config_.images, "IMAGES as a flag");
    flags_.Group("Output");
    flags_.Integer("--top", &config_.top, 1, 1 << 24,
                   "Labels per row, best first");
  } else {
    flags_.Choice("--subset", &config_.subset, "The rows to evaluate");
  }
}

void Flags::AddCompile() {
  CompileOptions& compile = config_.compile;
  const bool embeds = config_.verb == Verb::kWord2vec;  // on the CPU's threads
  const bool shows_ir = IsOneOf({Verb::kTrain, Verb::kGraph, Verb::kWord2vec});
  const bool advises = config_.verb == Verb::kAdvise;
  const bool searches = config_.verb == Verb::kSearch;
  flags_.Group("Compiler");
  if (config_.verb != Verb::kBench && !advises) {  // which compare the two
    flags_.Choice("--fuse", &compile.fuse,
                  "Fuse ops: on, or one call per textbook op");
  }
  if (config_.verb == Verb::kSweep) {
    flags_.Choices("--dispatch", &config_.dispatches,
                   "How the step is launched, a column each [ops,single; on a "
                   "GPU graph,single]",
                   std::optional(Dispatch::kAuto));
  } else if (!advises && !embeds) {
    flags_.Choice("--device", &compile.device, "Where it runs");
  }
  if (!advises && !embeds &&
      !IsOneOf({Verb::kSweep, Verb::kBench, Verb::kSearch})) {
    flags_.Choice("--dispatch", &compile.dispatch, "How the step is launched");
  }
  if (!searches && !embeds) {
    flags_.Choice("--kernels", &compile.kernels, "Which CPU kernels");
  }
  flags_.Value(
      "--threads", "N|auto",
      absl::StrCat(searches ? "CPU threads that share the trials; auto: "
                   : embeds ? "CPU threads that share the corpus; auto: "
                   : IsOneOf({Verb::kTrain, Verb::kAdvise})
                       ? "CPU threads; auto: the fastest of 1, 2, 4 ... to "
                       : "CPU threads; auto: ",
                   compile.threads, " [auto]"),
      [this](const std::string& text) { return SetThreads(text); });
  if (IsOneOf({Verb::kTrain, Verb::kGraph, Verb::kProfile, Verb::kSweep,
               Verb::kSearch})) {
    flags_.Choice(
        "--input", &config_.input,
        "What the first layer's products walk: all values of the data, or "
        "its nonzeros",
        config_.input == InputMode::kAuto ? std::nullopt
                                          : std::optional(InputMode::kAuto));
  }
  if (config_.verb != Verb::kEval && config_.verb != Verb::kPredict) {
    flags_.Value(
        "--affinity", "none|compact|LIST",
        embeds ? "CPUs of the threads: any, one core each, or as listed, like "
                 "0,2,4-7 [none]"
               : "CPUs of the workers of --dispatch single: any, one core "
                 "each, or as listed, like 0,2,4-7 [none]",
        [this](const std::string& text) -> absl::Status {
          ASSIGN_OR_RETURN(config_.compile.affinity, ParseAffinity(text));
          return absl::OkStatus();
        });
  }
  flags_.Value("--disable-pass", "A,B",
               absl::StrCat("Compiler passes to leave out, of ", PassNames()),
               [this](const std::string& text) { return SetPasses(text); });
  if (shows_ir) {
    flags_.Text("--dump-ir", "DIR", &compile.dump_dir,
                "Write the graph after each pass there");
  }
  if (config_.verb == Verb::kTrain) {
    flags_.Switch("--print-plan", &config_.print_plan, "Print the memory plan");
  }
  if (!advises && !embeds) AddGpuFlags(config_, flags_);
}

absl::Status Flags::SetThreads(const std::string& text) {
  config_.threads_auto = text == "auto";
  if (config_.threads_auto) {
    config_.compile.threads = DefaultThreads();
    return absl::OkStatus();
  }
  const absl::StatusOr<int64_t> threads = ParseInteger(text, 1, kMaxThreads);
  if (threads.ok()) {
    config_.compile.threads = static_cast<int>(*threads);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("want auto or an integer from 1 to ", kMaxThreads, ", got ",
                   Quote(text)));
}

absl::Status Flags::SetPasses(const std::string& text) {
  config_.compile.disabled_passes =
      absl::StrSplit(text, ',', absl::SkipEmpty());
  return CheckPassNames(config_.compile.disabled_passes);
}

absl::StatusOr<CommandLine> Flags::Parse(std::vector<std::string> args) {
  config_.arguments = args;
  config_.arguments.insert(config_.arguments.begin(), NameOf(config_.verb));
  ASSIGN_OR_RETURN(std::string text,
                   flags_.Parse(std::move(args), NameOf(config_.verb)));
  if (!text.empty()) return CommandLine{config_, std::move(text)};
  RETURN_IF_ERROR(CheckFiles());
  RETURN_IF_ERROR(SettleVectors(config_, files_));
  RETURN_IF_ERROR(SettleWord2vec(config_, flags_, files_));
  RETURN_IF_ERROR(SettleSearch(config_, flags_));
  RETURN_IF_ERROR(CheckTogether(config_, flags_));
  RETURN_IF_ERROR(CheckWindowGraph(config_, flags_));
  return CommandLine{config_, ""};
}

// MODEL and IMAGES may each be a flag or a word, in this order.
absl::Status Flags::CheckFiles() {
  if (config_.verb != Verb::kEval && config_.verb != Verb::kPredict) {
    return absl::OkStatus();
  }
  std::vector<std::string*> wanted;
  if (!Given("--model-file")) wanted.push_back(&config_.model_file);
  if (config_.verb == Verb::kPredict && !Given("--images")) {
    wanted.push_back(&config_.images);
  }
  if (files_.size() > wanted.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("want at most ", wanted.size(), " files here, got ",
                     Quote(files_[wanted.size()])));
  }
  for (size_t i = 0; i < files_.size(); ++i) *wanted[i] = files_[i];
  if (!config_.model_file.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(NameOf(config_.verb), ": want a MODEL file, got none"));
}

// Removes the verb from `args`: the first word that is no flag's value.
absl::StatusOr<Verb> TakeVerb(std::vector<std::string>& args) {
  std::vector<std::unique_ptr<Flags>> flags;
  for (const Named<Verb>& named : Names<Verb>()) {
    flags.push_back(std::make_unique<Flags>(named.value));
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (!absl::StartsWith(args[i], "-")) {
      absl::StatusOr<Verb> verb = ParseChoice<Verb>(args[i]);
      if (!verb.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "unknown verb ", Quote(args[i]), ": ", verb.status().message()));
      }
      args.erase(args.begin() + i);
      return verb;
    }
    if (absl::StrContains(args[i], "=")) continue;
    bool known = false, takes_value = false, takes_none = false;
    for (const auto& verb_flags : flags) {
      const std::optional<bool> takes = verb_flags->TakesValue(args[i]);
      known |= takes.has_value();
      takes_value |= takes.value_or(false);
      takes_none |= !takes.value_or(true);
    }
    if (!known) break;  // reported when train's are parsed
    // Of a flag that means this to one verb and that to another, a verb is no
    // value.
    if (takes_none && i + 1 < args.size() &&
        ParseChoice<Verb>(args[i + 1]).ok()) {
      continue;
    }
    if (takes_value) ++i;
  }
  return Verb::kTrain;
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(std::vector<std::string> args) {
  ASSIGN_OR_RETURN(const Verb verb, TakeVerb(args));
  Flags flags(verb);
  ASSIGN_OR_RETURN(CommandLine line, flags.Parse(std::move(args)));
  return line;
}

}  // namespace onestep
