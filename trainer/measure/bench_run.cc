// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/bench_run.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/probe.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "trainer/measure/step_session.h"
#include "trainer/numbers.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

void Append(std::vector<double>& to, const std::vector<double>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::vector<double> AllOf(const Samples& samples) {
  std::vector<double> all;
  for (const std::vector<double>& start : samples) Append(all, start);
  return all;
}

Json RowToJson(const Config& config, const BenchRow& row, double peak_gflops) {
  Json json = {{"batch", row.batch}};
  Json raw;
  for (const WayResult& way : row.ways) {
    const WayFigures figures = FiguresOf(config.model, row, way);
    json[way.name + "_us"] = figures.median_us;
    json[way.name + "_p5_us"] = figures.p5_us;
    json[way.name + "_p95_us"] = figures.p95_us;
    json["dispatches_" + way.name] = way.dispatches;
    json[way.name + "_ratio"] = figures.ratio.value;
    json[way.name + "_ratio_low"] = figures.ratio.low;
    json[way.name + "_ratio_high"] = figures.ratio.high;
    json[way.name + "_verdict"] = figures.verdict;
    json[way.name + "_gflops"] = figures.gflops;
    if (peak_gflops > 0) {
      json[way.name + "_peak_share"] = figures.gflops / peak_gflops;
    }
    if (!way.synced_us.empty()) {
      json[way.name + "_synced_us"] = Median(way.synced_us);
    }
    json[way.name + "_compile_ms"] = Median(way.compile_ms);
    json[way.name + "_first_step_ms"] = Median(way.first_step_ms);
    json[way.name + "_lowering"] = way.lowering;
    raw[way.name] = {{"us", way.us},
                     {"synced_us", way.synced_us},
                     {"compile_ms", way.compile_ms},
                     {"first_step_ms", way.first_step_ms}};
  }
  json["refused"] = row.refused;
  json["loss_difference"] = row.loss_difference;
  json["interrupted"] = row.interrupted;
  json["peak_gflops"] = row.peak_gflops;
  json["raw"] = raw;
  return json;
}

BenchRow RowFromJson(const Json& json) {
  BenchRow row;
  json.at("batch").get_to(row.batch);
  json.at("refused").get_to(row.refused);
  json.at("loss_difference").get_to(row.loss_difference);
  json.at("interrupted").get_to(row.interrupted);
  json.at("peak_gflops").get_to(row.peak_gflops);
  for (const auto& [name, raw] : json.at("raw").items()) {
    WayResult& way = row.ways.emplace_back();
    way.name = name;
    json.at("dispatches_" + name).get_to(way.dispatches);
    json.at(name + "_lowering").get_to(way.lowering);
    raw.at("us").get_to(way.us);
    raw.at("synced_us").get_to(way.synced_us);
    raw.at("compile_ms").get_to(way.compile_ms);
    raw.at("first_step_ms").get_to(way.first_step_ms);
  }
  return row;
}

// What the statistics require.
bool CanBeUsed(const BenchRow& row) {
  const auto positive = [](double us) { return us > 0; };
  const auto sampled = [&](const std::vector<double>& start) {
    return !start.empty() && std::all_of(start.begin(), start.end(), positive);
  };
  return std::all_of(row.ways.begin(), row.ways.end(), [&](const auto& way) {
    return !way.us.empty() &&
           std::all_of(way.us.begin(), way.us.end(), sampled);
  });
}

}  // namespace

double BenchRun::PeakGflops() const {
  double peak = 0;
  for (const BenchRow& row : rows) peak = std::max(peak, row.peak_gflops);
  return peak;
}

bool EnoughFor(const Samples& samples) {
  return std::ssize(samples) >= kLeastStarts &&
         std::ssize(AllOf(samples)) >= kLeastSamples;
}

const char* VerdictOf(const Interval& ratio, bool enough) {
  if (!enough) return "too few samples";
  if (ratio.Holds(1)) return "no measurable difference";
  return ratio.value < 1 ? "faster" : "slower";
}

WayFigures FiguresOf(const ModelSpec& model, const BenchRow& row,
                     const WayResult& way) {
  const std::vector<double> us = AllOf(way.us);
  WayFigures figures;
  figures.median_us = Median(us);
  figures.p5_us = Percentile(us, 0.05);
  figures.p95_us = Percentile(us, 0.95);
  figures.ratio = PairedRatio(way.us, row.Baseline().us);
  figures.verdict = VerdictOf(figures.ratio, EnoughFor(way.us));
  figures.gflops = TextbookFlops(model, row.batch) / figures.median_us * 1e-3;
  return figures;
}

absl::Status AddStart(const BenchRow& start, std::vector<BenchRow>& rows) {
  const auto same_batch = [&](const BenchRow& row) {
    return row.batch == start.batch;
  };
  const auto row = std::find_if(rows.begin(), rows.end(), same_batch);
  if (row == rows.end()) {
    rows.push_back(start);
    return absl::OkStatus();
  }
  if (start.refused != row->refused ||
      std::ssize(start.ways) != std::ssize(row->ways)) {
    return absl::InternalError(absl::StrCat(
        "bench: batch ", start.batch, ": want the same ways in each start"));
  }
  for (WayResult& way : row->ways) {
    const WayResult& from = start.Way(way.name);
    Append(way.compile_ms, from.compile_ms);
    Append(way.first_step_ms, from.first_step_ms);
    Append(way.synced_us, from.synced_us);
    way.us.insert(way.us.end(), from.us.begin(), from.us.end());
  }
  row->peak_gflops = std::max(row->peak_gflops, start.peak_gflops);
  row->loss_difference = std::max(row->loss_difference, start.loss_difference);
  row->interrupted += start.interrupted;
  return absl::OkStatus();
}

Json SettingsToJson(const Config& config) {
  const CompileOptions& compile = config.compile;
  Json json;
  json["model"] = config.model.ToString();
  json["activation"] = NameOf(config.model.activation);
  json["loss"] = NameOf(config.model.loss);
  json["optimizer"] = NameOf(config.optimizer.kind);
  json["momentum"] = AsWritten(config.optimizer.momentum);
  json["nesterov"] = config.optimizer.nesterov;
  json["weight_decay"] = AsWritten(config.optimizer.weight_decay);
  json["device"] = NameOf(compile.device);
  if (compile.device == Device::kGpu) {
    const CudaOptions& cuda = compile.cuda;
    const absl::StatusOr<CudaApi*> api = cuda.Api();
    const absl::StatusOr<CudaDevice> gpu =
        api.ok() ? (*api)->Device() : api.status();
    json["gpu"] = gpu.ok() ? gpu->ToString() : "unknown";
    json["math"] = NameOf(cuda.math);
    json["steps_per_launch"] = cuda.steps_per_launch;
    json["device_data"] = cuda.table_limit_bytes;
  } else {
    json["isa"] = CpuIsa();
    json["threads"] = compile.threads;
    json["affinity"] = ToString(compile.affinity);
    json["kernels"] = NameOf(compile.kernels);
  }
  json["disabled_passes"] = compile.disabled_passes;
  return json;
}

Json BenchToJson(const Config& config, const BenchRun& run) {
  Json json = SettingsToJson(config);
  json["data"] = run.source;
  json["density"] = run.density;
  const Samples& samples = run.rows[0].Baseline().us;
  json["samples"] = AllOf(samples).size();
  json["processes"] = samples.size();
  json["lr"] = kTimingRate;
  json["environment"] = ToJson(run.environment);
  const double peak = run.PeakGflops();
  if (peak > 0) json["peak_gflops"] = peak;
  json["rows"] = Json::array();
  for (const BenchRow& row : run.rows) {
    json["rows"].push_back(RowToJson(config, row, peak));
  }
  return json;
}

absl::StatusOr<BenchRun> BenchFromJson(const Json& json,
                                       const std::string& name) {
  const std::string wanted =
      absl::StrCat(name, ": want the output of trainer bench --json");
  if (json.is_discarded()) {
    return absl::DataLossError(absl::StrCat(wanted, ", got no JSON"));
  }
  BenchRun run;
  try {
    json.at("environment").at("cpu").get_to(run.environment.cpu);
    json.at("data").get_to(run.source);
    json.at("density").get_to(run.density);
    const bool has_peak = json.at("device") == NameOf(Device::kCpu);
    for (const Json& row : json.at("rows")) {
      run.rows.push_back(RowFromJson(row));
      if (!CanBeUsed(run.rows.back())) {
        return absl::DataLossError(
            absl::StrCat(wanted, ", got samples that are not above 0"));
      }
      if (has_peak && !(run.rows.back().peak_gflops > 0)) {
        return absl::DataLossError(
            absl::StrCat(wanted, ", got a peak that is not above 0"));
      }
    }
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat(wanted, ", got ", error.what()));
  }
  return run;
}

}  // namespace onestep
