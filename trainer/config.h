// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_CONFIG_H_
#define ONESTEP_TRAINER_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "nlohmann/json_fwd.hpp"
#include "trainer/data/dataset.h"
#include "trainer/model.h"
#include "trainer/schedule.h"
#include "trainer/search/search_config.h"
#include "trainer/word2vec/word2vec_config.h"

namespace onestep {

enum class Verb : uint8_t {
  kTrain,
  kEval,
  kPredict,
  kGraph,
  kBench,
  kInfo,
  kProbe,
  kProfile,
  kSweep,
  kAdvise,
  kSearch,
  kNearest,
  kAnalogy,
  kWord2vec,
  kWord2vecEval
};

// What the first layer's products walk: every value of the input, or its
// nonzeros. kAuto: the faster, by autotune.h.
enum class InputMode : uint8_t { kAuto, kDense, kSparse };

// How the verb graph shows it: all of it in words, or the final graph drawn.
enum class GraphFormat : uint8_t { kText, kDot, kSvg };

// Which step of word2vec the verb graph shows: none but a net's, skip-gram or
// CBOW against negatives or (hs) against the nodes of Huffman paths.
enum class WindowModel : uint8_t { kNone, kSkipGram, kHs, kCbow, kCbowHs };

// Everything the command line says; the members' values are the defaults.
// Each verb reads the part that its flags set (flags.h).
struct Config {
  Verb verb = Verb::kTrain;
  std::vector<std::string> arguments;  // the verb, then as they were given

  std::string data;               // a folder; "": see ResolveDataDirectory
  double validation = 0.2;        // share of the train rows
  Subset subset = Subset::kTest;  // eval only

  ModelSpec model;  // no widths: features of the data, 128, 10
  Init init = Init::kHe;

  OptimizerSpec optimizer;
  ScheduleKind lr_schedule = ScheduleKind::kConstant;
  double lr = 0.1;
  int64_t warmup = 0;  // steps
  int64_t batch = 32;
  int64_t epochs = 5;
  int64_t patience = 0;  // epochs; 0: train them all
  uint64_t seed = 1;
  std::optional<uint64_t> shuffle_seed;  // of the rows' order; none: seed

  CompileOptions compile;  // threads: a number, whatever threads_auto says
  bool threads_auto = true;
  InputMode input = InputMode::kAuto;
  bool print_plan = false;
  std::string cuda_graph;  // a file for the planned graph; "": none

  std::string out;  // a folder; "": nothing is saved
  bool force = false;
  bool json = false;

  std::string report;  // a file for the HTML page; "": none
  std::string trace;   // a file for the timeline; "": none
  int64_t trace_steps = 100;

  GraphFormat graph_format = GraphFormat::kText;
  WindowModel window_model = WindowModel::kNone;
  int64_t vocab = 40000;  // of that; its other sizes are in word2vec

  std::vector<int64_t> batches = {32, 128, 512, 2048, 4096};  // bench, sweep

  int64_t samples = 60;      // bench: of each way and batch
  int64_t processes = 5;     // bench: starts that share the samples
  std::string compare_file;  // bench: an earlier one's JSON; "": none
  double gate = 0;           // bench: 0.05 is 5 % slower; 0: none

  int64_t profile_steps = 2000;
  bool compare_fusion = false;  // profile: fuse off and on

  std::vector<Device> devices = {Device::kCpu};  // sweep
  std::vector<Dispatch> dispatches;  // sweep; none: ops, single; graph, single
  std::string peers;                 // sweep: a compare.json, or the program

  int64_t rows = 60000;   // advise: of an epoch
  double density = 0.19;  // advise: MNIST's
  bool check = false;     // advise: measure as well

  SearchConfig search;  // where it says more than lr, optimizer and batch

  // eval, predict, nearest, analogy, word2vec-eval: a file, or a folder of
  // --out
  std::string model_file;
  std::string images;  // predict: an IDX file; "": the test images
  int64_t top = 1;

  Word2vecConfig word2vec;  // what it says more than epochs, seed and out

  std::vector<std::string> words;  // nearest; analogy: a, b, c
  std::vector<std::string> pairs;  // word2vec-eval: files
  std::string questions;           // word2vec-eval: a file; "": none
};

// The words for an enum's values (and on, off) in flags, tables and JSON.
template <typename E>
struct Named {
  const char* name;
  E value;
};
template <typename E>
const std::vector<Named<E>>& Names();
template <>
const std::vector<Named<bool>>& Names();
template <>
const std::vector<Named<Verb>>& Names();
template <>
const std::vector<Named<GraphFormat>>& Names();
template <>
const std::vector<Named<WindowModel>>& Names();
template <>
const std::vector<Named<Subset>>& Names();
template <>
const std::vector<Named<Activation>>& Names();
template <>
const std::vector<Named<Loss>>& Names();
template <>
const std::vector<Named<Init>>& Names();
template <>
const std::vector<Named<OptimizerKind>>& Names();
template <>
const std::vector<Named<ScheduleKind>>& Names();
template <>
const std::vector<Named<Device>>& Names();
template <>
const std::vector<Named<Dispatch>>& Names();
template <>
const std::vector<Named<Kernels>>& Names();
template <>
const std::vector<Named<InputMode>>& Names();
template <>
const std::vector<Named<MathMode>>& Names();
template <>
const std::vector<Named<CudaTier>>& Names();
template <>
const std::vector<Named<CudaFirstLayer>>& Names();
template <>
const std::vector<Named<Sample>>& Names();
template <>
const std::vector<Named<Grouping>>& Names();
template <>
const std::vector<Named<EarlyStop>>& Names();
template <>
const std::vector<Named<SearchMetric>>& Names();

template <>
const std::vector<Named<CbowGradient>>& Names();
template <>
const std::vector<Named<VectorsFormat>>& Names();

template <typename E>
const char* NameOf(E value) {
  for (const Named<E>& named : Names<E>()) {
    if (named.value == value) return named.name;
  }
  return "?";
}

// What a train run was asked to do, by flag name. `data` is where the rows
// came from. REQUIRES: the model has widths.
nlohmann::ordered_json ConfigToJson(const Config& config);

// Such flags as an aligned table, one a line, each line indented by two;
// those without a value are left out.
std::string FlagTable(const nlohmann::ordered_json& flags);
std::string ConfigTable(const Config& config);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_CONFIG_H_
