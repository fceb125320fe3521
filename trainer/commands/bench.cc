// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/status.h"
#include "trainer/commands/commands.h"
#include "trainer/data/nonzeros.h"
#include "trainer/launch_costs.h"
#include "trainer/load_data.h"
#include "trainer/step_bench.h"
#include "trainer/step_session.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

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

struct BenchRun {
  std::vector<BenchRow> rows;
  std::string source;
  double density = 0;  // of the rows
};

absl::StatusOr<BenchRun> BenchAll(Config config) {
  ASSIGN_OR_RETURN(const Dataset data, RowsFor(config));
  if (config.compile.device == Device::kGpu) {
    UseKeptProbe(config.compile.cuda);
  }
  StatusLine line;
  BenchRun run;
  run.source = data.source;
  run.density = Density(data);
  for (const int64_t batch : config.batches) {
    const auto progress = [&](const std::string& text) {
      line.Show(absl::StrCat("batch ", batch, ": ", text));
    };
    ASSIGN_OR_RETURN(BenchRow row, BenchStep(config, data, batch, progress));
    run.rows.push_back(row);
  }
  return run;
}

// One peak for the whole run: that of a quiet moment is everyone's.
double PeakOf(const std::vector<BenchRow>& rows) {
  double peak = 0;
  for (const BenchRow& row : rows) peak = std::max(peak, row.peak_gflops);
  return peak;
}

Json ToJson(const BenchRow& row, double peak_gflops) {
  Json json = {{"batch", row.batch}};
  for (const WayResult& way : row.ways) {
    json[way.name + "_us"] = way.times.median_us;
    json[way.name + "_p5_us"] = way.times.p5_us;
    json[way.name + "_p95_us"] = way.times.p95_us;
    json["dispatches_" + way.name] = way.times.dispatches;
    json[way.name + "_ratio"] = way.ratio.value;
    json[way.name + "_ratio_low"] = way.ratio.low;
    json[way.name + "_ratio_high"] = way.ratio.high;
    json[way.name + "_gflops"] = way.gflops;
    if (peak_gflops > 0) {
      json[way.name + "_peak_share"] = way.gflops / peak_gflops;
    }
    if (way.times.synced_us > 0) {
      json[way.name + "_synced_us"] = way.times.synced_us;
    }
    json[way.name + "_lowering"] = way.lowering;
  }
  json["refused"] = row.refused;
  json["loss_difference"] = row.loss_difference;
  json["interrupted"] = row.interrupted;
  return json;
}

Json ToJson(const Config& config, const BenchRun& run) {
  const double peak = PeakOf(run.rows);
  Json json;
  json["model"] = config.model.ToString();
  json["optimizer"] = NameOf(config.optimizer.kind);
  json["data"] = run.source;
  json["density"] = run.density;
  json["device"] = NameOf(config.compile.device);
  if (config.compile.device == Device::kGpu) {
    json["math"] = NameOf(config.compile.cuda.math);
  } else {
    json["threads"] = config.compile.threads;
    json["affinity"] = ToString(config.compile.affinity);
  }
  json["samples"] = config.samples;
  json["lr"] = kTimingRate;
  if (peak > 0) json["peak_gflops"] = peak;
  json["rows"] = Json::array();
  for (const BenchRow& row : run.rows) {
    json["rows"].push_back(ToJson(row, peak));
  }
  return json;
}

// A line of one way to run the step.
std::string LineOf(const WayResult& way, double peak) {
  return absl::StrFormat(
      "%-13s %9.2f %9.2f %9.2f %5d  %-19s %7.1f %s\n", way.name,
      way.times.median_us, way.times.p5_us, way.times.p95_us,
      way.times.dispatches,
      way.name == "fused"
          ? ""
          : absl::StrFormat("%.2f (%.2f to %.2f)", way.ratio.value,
                            way.ratio.low, way.ratio.high),
      way.gflops,
      peak > 0 ? absl::StrFormat("%4.0f %%", 100 * way.gflops / peak)
               : absl::StrFormat("%9.2f", way.times.synced_us));
}

// What was compared, on what.
std::string HeaderOf(const Config& config, const BenchRun& run, double peak) {
  const std::string title = absl::StrCat(
      "bench: ", config.model.ToString(), ", ", NameOf(config.model.activation),
      ", ", NameOf(config.model.loss), ", ", NameOf(config.optimizer.kind));
  if (config.compile.device == Device::kGpu) {
    return absl::StrCat(
        title, ", device gpu, math ", NameOf(config.compile.cuda.math), "\n",
        run.rows[0].Way("fused").lowering, "\n",
        "_ops: every kernel launched by itself; the others by a CUDA graph, or "
        "t3 as one kernel\nunfused: a kernel per op; fused: t0, the library's "
        "matmuls; t1: three kernels a step;\nt2: one kernel a step; t3: one "
        "for many; _split: first layer on tensor cores, exact\nsynced: the "
        "host waits for each step and reads its loss\n");
  }
  return absl::StrCat(
      title, ", threads ", config.compile.threads, "\n",
      absl::StrFormat("peak %.1f GFLOP/s: multiply-adds in registers, the best "
                      "of samples in between\n",
                      peak),
      "unfused: a oneDNN primitive per op; loops: a loop of ours per op;\n"
      "fused: the fused chain; single: one dispatch, the team program\n");
}

std::string ToText(const Config& config, const BenchRun& run) {
  const double peak = PeakOf(run.rows);
  double difference = 0;
  int64_t interrupted = 0;
  std::string table = absl::StrCat(
      "  batch step          median us        p5       p95 calls  of fused "
      "(95 %)       GFLOP/s   ",
      peak > 0 ? "peak" : "synced us", "\n");
  for (const BenchRow& row : run.rows) {
    difference = std::max(difference, row.loss_difference);
    interrupted += row.interrupted;
    std::string batch = absl::StrFormat("%7d ", row.batch);
    for (const WayResult& way : row.ways) {
      absl::StrAppend(&table, std::exchange(batch, "        "),
                      LineOf(way, peak));
    }
    for (const std::string& refused : row.refused) {
      absl::StrAppend(&table, "        ", refused, "\n");
    }
  }
  return absl::StrCat(
      HeaderOf(config, run, peak),
      absl::StrFormat("rows: %s, %.1f %% of the values are not zero\n",
                      run.source, 100 * run.density),
      absl::StrFormat("losses of the first %d steps agree: relative difference "
                      "%.0e, at most %.0e\n",
                      kCheckedSteps, difference, LossTolerance(config)),
      config.samples, " samples of each step, in random order; ", interrupted,
      " more tries, as the kernel interrupted\n",
      "GFLOP/s counts the textbook step's matmuls, also where nonzeros alone "
      "are read;\nthe learning rate while timing is ",
      kTimingRate, "\n\n", table);
}

}  // namespace

absl::Status RunBench(const Config& config, Console& console) {
  ASSIGN_OR_RETURN(const BenchRun run, BenchAll(config));
  console.Print(config.json ? absl::StrCat(ToJson(config, run).dump(2), "\n")
                            : ToText(config, run));
  return absl::OkStatus();
}

}  // namespace onestep
