// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/status.h"
#include "trainer/bench_compare.h"
#include "trainer/bench_run.h"
#include "trainer/bench_starts.h"
#include "trainer/bench_text.h"
#include "trainer/commands/commands.h"
#include "trainer/data/nonzeros.h"
#include "trainer/environment.h"
#include "trainer/launch_costs.h"
#include "trainer/load_data.h"
#include "trainer/step_bench.h"

namespace onestep {
namespace {

// One line on stderr that is written over and over; nothing when stderr is no
// terminal.
class StatusLine {
 public:
  void Show(const std::string& text) {
    if (terminal_) std::fprintf(stderr, "\rbench: %s\x1b[K", text.c_str());
  }
  ~StatusLine() {
    if (terminal_) std::fputs("\r\x1b[K", stderr);
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
};

// The rows of --data, or made ones.
absl::StatusOr<Dataset> RowsFor(const Config& config) {
  const int64_t most =
      *std::max_element(config.batches.begin(), config.batches.end());
  if (config.data.empty()) return BenchRows(config.model, most);
  ASSIGN_OR_RETURN(Dataset data,
                   LoadSubset(config, Subset::kTrain, config.model.classes()));
  if (data.features != config.model.features()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model: want ", data.features, " features, as ",
                     data.source, " has, got ", config.model.features()));
  }
  if (most > data.rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch: want at most ", data.rows, ", the rows of ",
                     data.source, ", got ", most));
  }
  return data;
}

absl::StatusOr<BenchRun> BenchHere(Config config, StatusLine& line) {
  ASSIGN_OR_RETURN(const Dataset data, RowsFor(config));
  if (config.compile.device == Device::kGpu) {
    UseKeptProbe(config.compile.cuda);
  }
  BenchRun run;
  run.source = data.source;
  run.density = Density(data);
  for (const int64_t batch : config.batches) {
    const auto progress = [&](const std::string& text) {
      line.Show(absl::StrCat("batch ", batch, ": ", text));
    };
    ASSIGN_OR_RETURN(BenchRow row, BenchStep(config, data, batch, progress));
    run.rows.push_back(std::move(row));
  }
  return run;
}

absl::StatusOr<BenchRun> Bench(const Config& config) {
  const EnvironmentWatch watch;
  StatusLine line;
  absl::StatusOr<BenchRun> run =
      config.processes == 1
          ? BenchHere(config, line)
          : BenchInStarts(config,
                          [&](const std::string& text) { line.Show(text); });
  if (run.ok()) run->environment = watch.SoFar();
  return run;
}

}  // namespace

absl::Status RunBench(const Config& config, Console& console) {
  std::optional<EarlierRun> then;
  if (!config.compare_file.empty()) {
    ASSIGN_OR_RETURN(then, ReadEarlierRun(config));
  }
  ASSIGN_OR_RETURN(const BenchRun run, Bench(config));
  std::optional<BenchComparison> comparison;
  if (then) {
    ASSIGN_OR_RETURN(comparison, CompareBench(*then, run, config.gate));
  }
  if (config.json) {
    nlohmann::ordered_json json = BenchToJson(config, run);
    if (comparison) json["compare"] = ToJson(*comparison);
    console.Print(absl::StrCat(json.dump(2), "\n"));
  } else {
    console.Print(ToText(config, run));
    if (comparison) console.Print(absl::StrCat("\n", ToText(*comparison)));
  }
  return comparison ? GateStatus(*comparison) : absl::OkStatus();
}

}  // namespace onestep
