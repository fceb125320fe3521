// SPDX-License-Identifier: Apache-2.0
#include "trainer/flags.h"

#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/cpu_info.h"
#include "runtime/nearest.h"
#include "runtime/status.h"
#include "trainer/exit_code.h"
#include "trainer/numbers.h"
#include "trainer/version.h"

namespace onestep {
namespace {

constexpr int64_t kMaxBatch = 1 << 20;
constexpr int64_t kMaxEpochs = 1'000'000;
constexpr int64_t kMaxSteps = 1'000'000'000;
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxStepsPerLaunch = 1024;
constexpr int64_t kMaxSamples = 1'000'000;

constexpr char kUsage[] =
    "Trains small neural networks, each train step compiled.\n"
    "\n"
    "  trainer [train] [flags]                    train a model (no verb: "
    "this)\n"
    "  trainer eval MODEL [flags]                 accuracy, confusion matrix\n"
    "  trainer predict MODEL [IMAGES] [flags]     a label per image\n"
    "  trainer graph|bench|info [flags]           see the step, time it, see "
    "the machine\n"
    "  trainer probe [--json]                     what a GPU's launches "
    "cost\n"
    "  trainer VERB --help                        the flags of a verb\n";

template <typename E>
std::vector<std::string> Words() {
  std::vector<std::string> words;
  for (const Named<E>& named : Names<E>()) words.push_back(named.name);
  return words;
}

std::string PassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : AllPasses()) names.push_back(pass.name);
  return absl::StrJoin(names, ", ");
}

template <typename E>
absl::StatusOr<E> ParseChoice(const std::string& text) {
  for (const Named<E>& named : Names<E>()) {
    if (text == named.name) return named.value;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "want ", absl::StrJoin(Words<E>(), "|"), ", got ", Quote(text),
      "; the nearest is ", NearestOf(text, Words<E>())));
}

// The flags of one verb: CLI11 takes the arguments apart and writes the help;
// what a value means is decided here.
class Flags {
 public:
  explicit Flags(Verb verb);
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  absl::StatusOr<CommandLine> Parse(std::vector<std::string> args);
  // Whether `flag` is one of this verb's, and if so whether a value follows.
  std::optional<bool> TakesValue(const std::string& flag) const;

 private:
  using Set = std::function<absl::Status(const std::string&)>;

  void AddData();
  void AddModel();
  void AddOptimizer();
  void AddTraining();
  void AddCompile();
  void AddGpu();
  void AddModelFile();

  void Value(const std::string& flag, const std::string& type,
             const std::string& help, const Set& set);
  void Text(const std::string& flag, const std::string& type,
            std::string* value, const std::string& help);
  void Integer(const std::string& flag, int64_t* value, int64_t low,
               int64_t high, const std::string& help);
  template <typename T>
  void Number(const std::string& flag, T* value, double low, double high,
              const std::string& help);
  template <typename E>
  void Choice(const std::string& flag, E* value, const std::string& help);
  void Switch(const std::string& flag, bool* value, const std::string& help);

  absl::Status SetBatches(const std::string& text);
  absl::Status SetPasses(const std::string& text);
  absl::Status SetThreads(const std::string& text);
  bool Given(const std::string& flag) const {
    const CLI::Option* option = app_.get_option_no_throw(flag);
    return option != nullptr && option->count() > 0;
  }
  absl::Status CheckExtras() const;
  absl::Status CheckFiles();
  absl::Status CheckGpu() const;
  absl::Status CheckTogether() const;

  Config config_;
  std::vector<std::string> files_;  // positional
  absl::Status refused_;            // the first value that was refused
  std::string group_;
  CLI::App app_;
};

Flags::Flags(Verb verb) {
  config_.verb = verb;
  config_.compile.threads = DefaultThreads();
  app_.name(absl::StrCat("trainer ", NameOf(verb)));
  app_.description(kUsage);
  app_.allow_extras();
  app_.set_version_flag("--version", VersionText, "Show versions and exit");
  app_.footer(ExitCodeHelp());
  const bool builds = verb != Verb::kEval && verb != Verb::kPredict;
  const bool shows = verb == Verb::kGraph || verb == Verb::kBench;
  if (shows) config_.model.widths = {784, 128, 10};
  if (verb != Verb::kInfo && verb != Verb::kProbe) {
    if (verb != Verb::kGraph) AddData();
    if (builds) AddModel();
    if (builds) AddOptimizer();
    if (verb == Verb::kTrain) AddTraining();
    if (!builds) AddModelFile();
    AddCompile();
  }
  group_ = "Output";
  if (verb == Verb::kGraph) {
    Choice("--format", &config_.graph_format,
           "All of it as text, or the final graph for or by Graphviz");
    return;
  }
  Switch("--json", &config_.json, "Print one JSON object instead of text");
}

void Flags::AddData() {
  group_ = "Data";
  Text("--data", "DIR", &config_.data,
       config_.verb == Verb::kBench
           ? "Folder of IDX files whose train rows are used [random rows, a "
             "fifth of their values not 0]"
           : "Folder of IDX files, plain or .gz [$ONESTEP_DATA, ./data, the "
             "system's Fashion-MNIST, a built-in set]");
}

void Flags::AddModel() {
  group_ = "Model";
  Value("--model", "WIDTHS",
        config_.model.widths.empty()
            ? "Layer widths [features-128-10, e.g. 784-128-10]"
            : absl::StrCat("Layer widths [", config_.model.ToString(), "]"),
        [this](const std::string& text) -> absl::Status {
          ASSIGN_OR_RETURN(config_.model.widths, ParseWidths(text));
          return absl::OkStatus();
        });
  Choice("--activation", &config_.model.activation, "Of the hidden layers");
  Choice("--loss", &config_.model.loss, "What is minimised");
  if (config_.verb != Verb::kTrain) return;
  Choice("--init", &config_.init, "How weights are drawn");
  Value("--seed", "N", "Of weights and shuffling [1]",
        [this](const std::string& text) -> absl::Status {
          ASSIGN_OR_RETURN(config_.seed, ParseUnsigned(text));
          return absl::OkStatus();
        });
}

void Flags::AddOptimizer() {
  group_ = "Optimizer";
  Choice("--optimizer", &config_.optimizer.kind, "How weights are updated");
  Number("--momentum", &config_.optimizer.momentum, 0, 1,
         "Of --optimizer momentum");
  Switch("--nesterov", &config_.optimizer.nesterov,
         "Nesterov's form of momentum");
  Number("--weight-decay", &config_.optimizer.weight_decay, 0, FLT_MAX,
         "L2; for adamw decoupled");
  if (config_.verb != Verb::kBench) {
    Integer("--batch", &config_.batch, 1, kMaxBatch, "Rows of a step");
    return;
  }
  Value("--batch", "A,B",
        absl::StrCat("Rows of a step, one measurement each [",
                     absl::StrJoin(config_.batches, ","), "]"),
        [this](const std::string& text) { return SetBatches(text); });
  Integer("--samples", &config_.samples, 2, kMaxSamples,
          "How often each step is timed");
}

void Flags::AddTraining() {
  Number("--lr", &config_.lr, FLT_MIN, FLT_MAX, "Learning rate");
  Choice("--lr-schedule", &config_.lr_schedule,
         "Of the rate: cosine falls to 0; step to a tenth at 1/2 of the run "
         "and a hundredth at 3/4");
  Integer("--warmup", &config_.warmup, 0, kMaxSteps,
          "Steps in which the rate rises from 0");
  group_ = "Run";
  Integer("--epochs", &config_.epochs, 1, kMaxEpochs, "Passes over the data");
  Number("--validation", &config_.validation, 0, 0.99,
         "Share of the train rows, the last ones, kept for validation");
  Integer("--patience", &config_.patience, 0, kMaxEpochs,
          "Stop after N epochs without a better validation accuracy; 0: never");
  group_ = "Output";
  Text("--out", "DIR", &config_.out,
       "Save model.safetensors, best.safetensors, config.json, log.jsonl and "
       "graph.txt there");
  Switch("--force", &config_.force, "Overwrite what is in --out");
}

void Flags::AddModelFile() {
  const bool predicts = config_.verb == Verb::kPredict;
  group_ = "Model";
  app_.add_option("files", files_,
                  predicts ? "MODEL and IDX images [the test images of --data]"
                           : "MODEL, a .safetensors file or a folder of --out")
      ->type_name(predicts ? "MODEL [IMAGES]" : "MODEL");
  Text("--model-file", "FILE", &config_.model_file, "MODEL as a flag");
  group_ = "Data";
  if (predicts) {
    Text("--images", "FILE", &config_.images, "IMAGES as a flag");
    group_ = "Output";
    Integer("--top", &config_.top, 1, 1 << 24, "Labels per row, best first");
  } else {
    Choice("--subset", &config_.subset, "The rows to evaluate");
  }
}

void Flags::AddCompile() {
  CompileOptions& compile = config_.compile;
  const bool trains =
      config_.verb == Verb::kTrain || config_.verb == Verb::kGraph;
  group_ = "Compiler";
  if (config_.verb != Verb::kBench) {  // which compares the two
    Choice("--fuse", &compile.fuse,
           "Fuse ops: on, or one call per textbook op");
  }
  Choice("--device", &compile.device, "Where it runs");
  Choice("--dispatch", &compile.dispatch, "How the step is launched");
  Choice("--kernels", &compile.kernels, "Which CPU kernels");
  Value("--threads", "N|auto",
        absl::StrCat("CPU threads; auto: the fastest of 1, 2, 4 ... in a "
                     "train step, else ",
                     compile.threads, " [auto]"),
        [this](const std::string& text) { return SetThreads(text); });
  if (trains) {
    Choice("--input", &config_.input,
           "What the first layer's products walk: all values of the data, or "
           "its nonzeros");
  }
  if (config_.verb != Verb::kEval && config_.verb != Verb::kPredict) {
    Value("--affinity", "none|compact|LIST",
          "CPUs of the workers of --dispatch single: any, one core each, or "
          "as listed, like 0,2,4-7 [none]",
          [this](const std::string& text) -> absl::Status {
            ASSIGN_OR_RETURN(config_.compile.affinity, ParseAffinity(text));
            return absl::OkStatus();
          });
  }
  Value("--disable-pass", "A,B",
        absl::StrCat("Compiler passes to leave out, of ", PassNames()),
        [this](const std::string& text) { return SetPasses(text); });
  if (trains) {
    Text("--dump-ir", "DIR", &compile.dump_dir,
         "Write the graph after each pass there");
  }
  if (config_.verb == Verb::kTrain) {
    Switch("--print-plan", &config_.print_plan, "Print the memory plan");
  }
  AddGpu();
}

void Flags::AddGpu() {
  CudaOptions& cuda = config_.compile.cuda;
  group_ = "GPU";
  Choice("--math", &cuda.math, "How fp32 matrices are multiplied");
  if (config_.verb == Verb::kEval || config_.verb == Verb::kPredict) return;
  if (config_.verb == Verb::kBench) {  // which compares them
    Choice("--tier", &cuda.tier, "Time this one beside t0, and no other");
  } else {
    Choice("--tier", &cuda.tier,
           "The step as library matmuls (t0), three kernels (t1), one kernel "
           "(t2), one for many steps (t3)");
    Choice("--first-layer", &cuda.first_layer,
           "Of t1 to t3: fp32 multiply-adds, or exact products of bytes with "
           "weights split into three bf16");
  }
  Value("--steps-per-launch", "N|auto",
        "Train steps of one CUDA graph [auto: by the number of its nodes]",
        [&cuda](const std::string& text) -> absl::Status {
          if (text == "auto") {
            cuda.steps_per_launch = 0;
            return absl::OkStatus();
          }
          ASSIGN_OR_RETURN(cuda.steps_per_launch,
                           ParseInteger(text, 1, kMaxStepsPerLaunch));
          return absl::OkStatus();
        });
  Value("--device-data", "MIB",
        "Device memory for the rows; of a larger table the rows come as steps "
        "need them [what is free]",
        [&cuda](const std::string& text) -> absl::Status {
          ASSIGN_OR_RETURN(const int64_t mib, ParseInteger(text, 1, 1 << 24));
          cuda.table_limit_bytes = mib << 20;
          return absl::OkStatus();
        });
  if (config_.verb == Verb::kTrain || config_.verb == Verb::kGraph) {
    Text("--dump-cuda-graph", "FILE", &config_.cuda_graph,
         "Write the planned CUDA graph there, for Graphviz; where a GPU is, "
         "CUDA's own drawing beside it");
  }
}

void Flags::Value(const std::string& flag, const std::string& type,
                  const std::string& help, const Set& set) {
  app_.add_option_function<std::string>(
          flag,
          [this, flag, set](const std::string& text) {
            const absl::Status status = set(text);
            if (status.ok()) return;
            refused_.Update(absl::InvalidArgumentError(
                absl::StrCat(flag, ": ", status.message())));
          },
          help)
      ->type_name(type)
      ->group(group_)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Flags::Text(const std::string& flag, const std::string& type,
                 std::string* value, const std::string& help) {
  Value(flag, type, help, [value, type](const std::string& text) {
    *value = text;
    if (!text.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("want ", type, ", got ''"));
  });
}

void Flags::Integer(const std::string& flag, int64_t* value, int64_t low,
                    int64_t high, const std::string& help) {
  Value(flag, "N", absl::StrCat(help, " [", *value, "]"),
        [value, low, high](const std::string& text) -> absl::Status {
          ASSIGN_OR_RETURN(*value, ParseInteger(text, low, high));
          return absl::OkStatus();
        });
}

template <typename T>
void Flags::Number(const std::string& flag, T* value, double low, double high,
                   const std::string& help) {
  Value(flag, "X", absl::StrCat(help, " [", *value, "]"),
        [value, low, high](const std::string& text) -> absl::Status {
          ASSIGN_OR_RETURN(*value, ParseNumber(text, low, high));
          return absl::OkStatus();
        });
}

template <typename E>
void Flags::Choice(const std::string& flag, E* value, const std::string& help) {
  Value(flag, absl::StrJoin(Words<E>(), "|"),
        absl::StrCat(help, " [", NameOf(*value), "]"),
        [value](const std::string& text) -> absl::Status {
          ASSIGN_OR_RETURN(*value, ParseChoice<E>(text));
          return absl::OkStatus();
        });
}

void Flags::Switch(const std::string& flag, bool* value,
                   const std::string& help) {
  app_.add_flag(flag, *value, help)->group(group_);
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

absl::Status Flags::SetBatches(const std::string& text) {
  config_.batches.clear();
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(const int64_t batch, ParseInteger(word, 1, kMaxBatch));
    config_.batches.push_back(batch);
  }
  return absl::OkStatus();
}

absl::Status Flags::SetPasses(const std::string& text) {
  config_.compile.disabled_passes =
      absl::StrSplit(text, ',', absl::SkipEmpty());
  return CheckPassNames(config_.compile.disabled_passes);
}

std::optional<bool> Flags::TakesValue(const std::string& flag) const {
  const CLI::Option* option = app_.get_option_no_throw(flag);
  if (option == nullptr) return std::nullopt;
  return option->get_items_expected_min() > 0;
}

absl::StatusOr<CommandLine> Flags::Parse(std::vector<std::string> args) {
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
  try {
    app_.parse(args);
  } catch (const CLI::CallForHelp&) {
    return CommandLine{config_, app_.help()};
  } catch (const CLI::CallForVersion& version) {
    return CommandLine{config_, absl::StrCat(version.what(), "\n")};
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(error.what());
  }
  RETURN_IF_ERROR(CheckExtras());
  RETURN_IF_ERROR(refused_);
  RETURN_IF_ERROR(CheckFiles());
  RETURN_IF_ERROR(CheckGpu());
  RETURN_IF_ERROR(CheckTogether());
  return CommandLine{config_, ""};
}

absl::Status Flags::CheckExtras() const {
  const std::vector<std::string> extras = app_.remaining();
  if (extras.empty()) return absl::OkStatus();
  const std::string& extra = extras.front();
  if (!absl::StartsWith(extra, "-")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "want flags after ", NameOf(config_.verb), ", got ", Quote(extra)));
  }
  std::vector<std::string> known;
  for (const CLI::Option* option : app_.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      known.push_back("--" + name);
    }
  }
  const std::string flag = extra.substr(0, extra.find('='));
  return absl::InvalidArgumentError(
      absl::StrCat("unknown flag ", Quote(flag), " of ", NameOf(config_.verb),
                   "; the nearest is ", NearestOf(flag, known)));
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

absl::Status Flags::CheckGpu() const {
  if (config_.compile.device == Device::kGpu) {
    const CudaOptions& cuda = config_.compile.cuda;
    if (cuda.tier != CudaTier::kT0 ||
        cuda.first_layer == CudaFirstLayer::kAuto) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "--first-layer: want --tier t1, t2 or t3 with it, got t0");
  }
  for (const char* flag :
       {"--math", "--tier", "--first-layer", "--steps-per-launch",
        "--device-data", "--dump-cuda-graph"}) {
    if (Given(flag)) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": want --device gpu with it, got cpu"));
    }
  }
  return absl::OkStatus();
}

absl::Status Flags::CheckTogether() const {
  for (const char* flag : {"--momentum", "--nesterov"}) {
    if (Given(flag) && config_.optimizer.kind != OptimizerKind::kMomentum) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": want --optimizer momentum with it, got ",
                       NameOf(config_.optimizer.kind)));
    }
  }
  if (config_.patience > 0 && config_.validation == 0) {
    return absl::InvalidArgumentError(
        "--patience: want --validation above 0 with it, got 0");
  }
  if (config_.force && config_.out.empty()) {
    return absl::InvalidArgumentError("--force: want --out DIR with it");
  }
  return absl::OkStatus();
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
    std::optional<bool> takes_value;
    for (const auto& verb_flags : flags) {
      if (!takes_value) takes_value = verb_flags->TakesValue(args[i]);
    }
    if (!takes_value) break;  // unknown: reported when train's are parsed
    if (*takes_value) ++i;
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
