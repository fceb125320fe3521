// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/status.h"
#include "trainer/commands/commands.h"
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

absl::StatusOr<std::vector<BenchRow>> BenchAll(const Config& config) {
  const Dataset data = BenchRows(
      config.model,
      *std::max_element(config.batches.begin(), config.batches.end()));
  StatusLine line;
  std::vector<BenchRow> rows;
  for (const int64_t batch : config.batches) {
    const auto progress = [&](const std::string& text) {
      line.Show(absl::StrCat("batch ", batch, ": ", text));
    };
    ASSIGN_OR_RETURN(BenchRow row, BenchStep(config, data, batch, progress));
    rows.push_back(row);
  }
  return rows;
}

// One peak for the whole run: that of a quiet moment is everyone's.
double PeakOf(const std::vector<BenchRow>& rows) {
  double peak = 0;
  for (const BenchRow& row : rows) peak = std::max(peak, row.peak_gflops);
  return peak;
}

Json ToJson(const BenchRow& row, double peak_gflops) {
  Json json = {{"batch", row.batch}};
  const auto add_times = [&json](const std::string& name,
                                 const StepTimes& times) {
    json[name + "_us"] = times.median_us;
    json[name + "_p5_us"] = times.p5_us;
    json[name + "_p95_us"] = times.p95_us;
    json["dispatches_" + name] = times.dispatches;
  };
  const auto add_ratio = [&json](const std::string& name,
                                 const Interval& ratio) {
    json[name] = ratio.value;
    json[name + "_low"] = ratio.low;
    json[name + "_high"] = ratio.high;
  };
  add_times("unfused", row.unfused);
  add_times("loops", row.loops);
  add_times("fused", row.fused);
  add_ratio("ratio", row.ratio);
  add_ratio("loops_ratio", row.loops_ratio);
  json["gflops"] = row.gflops;
  json["peak_share"] = row.gflops / peak_gflops;
  json["loss_difference"] = row.loss_difference;
  json["interrupted"] = row.interrupted;
  return json;
}

Json ToJson(const Config& config, const std::vector<BenchRow>& rows) {
  const double peak = PeakOf(rows);
  Json json;
  json["model"] = config.model.ToString();
  json["optimizer"] = NameOf(config.optimizer.kind);
  json["threads"] = config.compile.threads;
  json["samples"] = config.samples;
  json["lr"] = kTimingRate;
  json["peak_gflops"] = peak;
  json["rows"] = Json::array();
  for (const BenchRow& row : rows) json["rows"].push_back(ToJson(row, peak));
  return json;
}

// A line of one way to run the step.
std::string LineOf(const char* name, const StepTimes& times,
                   const std::string& ratio, double flops, double peak) {
  const double gflops = flops / times.median_us * 1e-3;
  return absl::StrFormat("%-7s %9.2f %9.2f %9.2f %5d  %-19s %7.1f %4.0f %%\n",
                         name, times.median_us, times.p5_us, times.p95_us,
                         times.dispatches, ratio, gflops, 100 * gflops / peak);
}

std::string ToText(const Interval& ratio) {
  return absl::StrFormat("%.2f (%.2f to %.2f)", ratio.value, ratio.low,
                         ratio.high);
}

std::string ToText(const Config& config, const std::vector<BenchRow>& rows) {
  const double peak = PeakOf(rows);
  double difference = 0;
  int64_t interrupted = 0;
  std::string table =
      "  batch step    median us        p5       p95 calls  to fused (95 %)"
      "     GFLOP/s   peak\n";
  for (const BenchRow& row : rows) {
    difference = std::max(difference, row.loss_difference);
    interrupted += row.interrupted;
    const double flops = TextbookFlops(config.model, row.batch);
    absl::StrAppendFormat(
        &table, "%7d %s        %s        %s", row.batch,
        LineOf("unfused", row.unfused, ToText(row.ratio), flops, peak),
        LineOf("loops", row.loops, ToText(row.loops_ratio), flops, peak),
        LineOf("fused", row.fused, "", flops, peak));
  }
  return absl::StrCat(
      "bench: ", config.model.ToString(), ", ", NameOf(config.model.activation),
      ", ", NameOf(config.model.loss), ", ", NameOf(config.optimizer.kind),
      ", threads ", config.compile.threads, "\n",
      absl::StrFormat("peak %.1f GFLOP/s: multiply-adds in registers, the best "
                      "of samples in between\n",
                      peak),
      absl::StrFormat("losses of the first %d steps agree: relative difference "
                      "%.0e, at most %.0e\n",
                      kCheckedSteps, difference, kLossTolerance),
      config.samples, " samples of each step, in random order; ", interrupted,
      " more tries, as the kernel interrupted\n",
      "unfused: a oneDNN primitive per op; loops: a loop of ours per op\n",
      "GFLOP/s counts the textbook step's matmuls; the learning rate while "
      "timing is ",
      kTimingRate, "\n\n", table);
}

}  // namespace

absl::Status RunBench(const Config& config, Console& console) {
  ASSIGN_OR_RETURN(const std::vector<BenchRow> rows, BenchAll(config));
  console.Print(config.json ? absl::StrCat(ToJson(config, rows).dump(2), "\n")
                            : ToText(config, rows));
  return absl::OkStatus();
}

}  // namespace onestep
