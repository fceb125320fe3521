// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/bench_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "trainer/measure/peak.h"

namespace onestep {
namespace {

// How its time compares with the baseline's; "" for the baseline itself.
std::string RatioOf(const BenchRow& row, const WayResult& way,
                    const WayFigures& figures) {
  if (way.name == row.Baseline().name) return "";
  const bool enough = EnoughFor(way.us);
  if (enough && figures.ratio.Holds(1)) return figures.verdict;
  const std::string ratio = ToText(figures.ratio, enough);
  return enough ? ratio : absl::StrCat(ratio, ", ", figures.verdict);
}

// A line of one way to run the step.
std::string LineOf(const BenchRow& row, const WayResult& way,
                   const WayFigures& figures, double peak) {
  return absl::StrFormat(
      "%-16s %9.2f %9.2f %9.2f %5d  %-24s %7.1f %s\n", way.name,
      figures.median_us, figures.p5_us, figures.p95_us, way.dispatches,
      RatioOf(row, way, figures), figures.gflops,
      way.synced_us.empty()
          ? absl::StrFormat("%4.0f %%", 100 * figures.gflops / peak)
          : absl::StrFormat("%9.2f", Median(way.synced_us)));
}

// What was compared, on what.
std::string HeaderOf(const Config& config, const BenchRun& run, double peak) {
  const std::string title = absl::StrCat(
      "bench: ", config.model.ToString(), ", ", NameOf(config.model.activation),
      ", ", NameOf(config.model.loss), ", ", NameOf(config.optimizer.kind));
  if (config.compile.device == Device::kGpu) {
    return absl::StrCat(
        title, ", device gpu, math ", NameOf(config.compile.cuda.math), "\n",
        run.rows[0].Baseline().lowering, "\n",
        "unfused: a kernel per op; library: cuBLASLt's matmuls; fused: three "
        "kernels a step;\npersistent: one kernel for many steps; _ops: every "
        "kernel launched by itself, else one\nCUDA graph; _split: the first "
        "layer on tensor cores, exact; synced: the host waits for\neach step "
        "and reads its loss\n");
  }
  const std::string turns = TakeTurnsNote(config.compile.threads);
  return absl::StrCat(
      title, ", threads ", config.compile.threads, "\n",
      absl::StrFormat("peak %.1f GFLOP/s: multiply-adds in registers, the best "
                      "of samples in between\n",
                      peak),
      turns.empty() ? "" : absl::StrCat("note: ", turns, "\n"),
      "unfused: a oneDNN primitive per op; loops: a loop of ours per op;\n"
      "fused: the fused chain; single: one dispatch, the team program\n");
}

// A table of all ways of all batches, a line each by `line_of`.
template <typename LineOf>
std::string TableOf(const BenchRun& run, const LineOf& line_of) {
  std::string table;
  for (const BenchRow& row : run.rows) {
    std::string batch = absl::StrFormat("%7d ", row.batch);
    for (const WayResult& way : row.ways) {
      absl::StrAppend(&table, std::exchange(batch, "        "),
                      line_of(row, way));
    }
  }
  return table;
}

std::string SteadyTable(const Config& config, const BenchRun& run,
                        double peak) {
  return absl::StrCat(
      absl::StrFormat(
          "  batch %-16s median us        p5       p95 calls  %-24s GFLOP/s   ",
          "step", absl::StrCat("of ", run.rows[0].Baseline().name, " (95 %)")),
      peak > 0 ? "peak" : "synced us", "\n",
      TableOf(run, [&](const BenchRow& row, const WayResult& way) {
        return LineOf(row, way, FiguresOf(config.model, row, way), peak);
      }));
}

std::string StartTable(const BenchRun& run) {
  return absl::StrCat(
      "before that, the median of the process starts\n"
      "  batch step             compile ms  first step ms\n",
      TableOf(run, [](const BenchRow&, const WayResult& way) {
        return absl::StrFormat("%-16s  %10.2f     %10.3f\n", way.name,
                               Median(way.compile_ms),
                               Median(way.first_step_ms));
      }));
}

std::string ProtocolOf(const BenchRun& run) {
  const Samples& samples = run.rows[0].Baseline().us;
  int64_t interrupted = 0;
  for (const BenchRow& row : run.rows) interrupted += row.interrupted;
  return absl::StrCat(
      samples.size() * samples[0].size(), " samples of each step in ",
      samples.size(), " process starts, in random order; ", interrupted,
      " more tries, as the kernel interrupted\n",
      EnoughFor(samples)
          ? ""
          : absl::StrCat("no verdict: want ", kLeastSamples, " samples in ",
                         kLeastStarts, " process starts or more\n"));
}

}  // namespace

std::string ToText(const Interval& ratio, bool enough) {
  if (!enough) return absl::StrFormat("%.3f", ratio.value);
  return absl::StrFormat("%.3f (%.3f to %.3f)", ratio.value, ratio.low,
                         ratio.high);
}

std::string ToText(const Config& config, const BenchRun& run) {
  const double peak = run.PeakGflops();
  double difference = 0;
  std::string refused;
  for (const BenchRow& row : run.rows) {
    difference = std::max(difference, row.loss_difference);
    for (const std::string& way : row.refused) {
      absl::StrAppendFormat(&refused, "batch %d: %s\n", row.batch, way);
    }
  }
  return absl::StrCat(
      HeaderOf(config, run, peak),
      absl::StrFormat("rows: %s, %.1f %% of the values are not zero\n",
                      run.source, 100 * run.density),
      absl::StrFormat("losses of the first %d steps agree: relative difference "
                      "%.0e, at most %.0e\n",
                      kCheckedSteps, difference, LossTolerance(config)),
      ProtocolOf(run), "machine: ", ToString(run.environment), "\n",
      "GFLOP/s counts the textbook step's matmuls, also where nonzeros alone "
      "are read;\nthe learning rate while timing is ",
      kTimingRate, "\n\n", SteadyTable(config, run, peak), refused, "\n",
      StartTable(run));
}

}  // namespace onestep
