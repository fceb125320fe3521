// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/bench_starts.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "trainer/interrupt.h"
#include "trainer/measure/subprocess.h"

namespace onestep {

std::vector<std::string> StartArguments(const Config& config, int64_t batch) {
  constexpr int64_t kFewest = 2;  // that --samples takes
  const int64_t share =
      (config.samples + config.processes - 1) / config.processes;
  std::vector<std::string> arguments;
  const std::vector<std::string>& given = config.arguments;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] == "--compare" || given[i] == "--gate") {
      ++i;  // the value
    } else if (!absl::StartsWith(given[i], "--compare=") &&
               !absl::StartsWith(given[i], "--gate=")) {
      arguments.push_back(given[i]);
    }
  }
  for (const std::string& argument :
       {std::string("--json"), std::string("--processes=1"),
        absl::StrCat("--samples=", std::max(share, kFewest)),
        absl::StrCat("--batch=", batch)}) {
    arguments.push_back(argument);  // of a flag the last one counts
  }
  return arguments;
}

absl::StatusOr<BenchRun> BenchInStarts(
    const Config& config,
    const std::function<void(const std::string&)>& progress) {
  CatchSignals();
  BenchRun run;
  for (int64_t start = 1; start <= config.processes; ++start) {
    for (const int64_t batch : config.batches) {
      progress(absl::StrCat("batch ", batch, ": process start ", start, " of ",
                            config.processes));
      ASSIGN_OR_RETURN(
          const std::string text,
          RunProgram("/proc/self/exe", StartArguments(config, batch)));
      const auto json = nlohmann::ordered_json::parse(
          text, /*cb=*/nullptr, /*allow_exceptions=*/false);
      ASSIGN_OR_RETURN(const BenchRun made,
                       BenchFromJson(json, "bench: a process start"));
      run.source = made.source;
      run.density = made.density;
      for (const BenchRow& row : made.rows) {
        RETURN_IF_ERROR(AddStart(row, run.rows));
      }
    }
  }
  return run;
}

}  // namespace onestep
