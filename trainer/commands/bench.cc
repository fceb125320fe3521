// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "trainer/commands/commands.h"
#include "trainer/data/nonzeros.h"
#include "trainer/json_text.h"
#include "trainer/launch_costs.h"
#include "trainer/measure/bench_compare.h"
#include "trainer/measure/bench_run.h"
#include "trainer/measure/bench_starts.h"
#include "trainer/measure/bench_text.h"
#include "trainer/measure/environment.h"
#include "trainer/measure/rows_to_time.h"
#include "trainer/measure/step_bench.h"
#include "trainer/status_line.h"

namespace onestep {
namespace {

// All of it in this process.
absl::StatusOr<BenchRun> BenchHere(Config config, const StatusLine& line) {
  const int64_t most =
      *std::max_element(config.batches.begin(), config.batches.end());
  ASSIGN_OR_RETURN(const Dataset data, RowsToTime(config, most));
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
  const StatusLine line("bench");
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
    console.Print(absl::StrCat(JsonText(json, 2), "\n"));
  } else {
    console.Print(ToText(config, run));
    if (comparison) console.Print(absl::StrCat("\n", ToText(*comparison)));
  }
  return comparison ? GateStatus(*comparison) : absl::OkStatus();
}

}  // namespace onestep
