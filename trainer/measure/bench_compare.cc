// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/bench_compare.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "runtime/cpu/cpu_info.h"
#include "trainer/measure/bench_text.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

// Peaks that differ by more are mentioned.
constexpr double kPeakTolerance = 0.03;

// Of the data: a folder has other names elsewhere.
constexpr double kDensityTolerance = 0.01;

absl::StatusOr<Json> ReadJson(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::NotFoundError(
        absl::StrCat("--compare: want a file, got the folder ", path));
  }
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot read: ", std::strerror(errno)));
  }
  return Json::parse(file, /*cb=*/nullptr, /*allow_exceptions=*/false);
}

absl::Status CheckSettings(const Config& config, Json then,
                           const std::string& cpu_then) {
  Json now = SettingsToJson(config);
  now["cpu"] = CpuModelName();
  then["cpu"] = cpu_then;
  for (const auto& [key, value] : now.items()) {
    if (then[key] == value) continue;  // null where it is not there
    return absl::InvalidArgumentError(
        absl::StrCat("--compare ", config.compare_file, ": want ", key, " ",
                     then[key].dump(), " as in it, got ", value.dump()));
  }
  return absl::OkStatus();
}

const BenchRow* RowOf(const std::vector<BenchRow>& rows, int64_t batch) {
  const auto row =
      std::find_if(rows.begin(), rows.end(),
                   [batch](const BenchRow& row) { return row.batch == batch; });
  return row == rows.end() ? nullptr : &*row;
}

const WayResult* WayOf(const BenchRow& row, const std::string& name) {
  const auto way =
      std::find_if(row.ways.begin(), row.ways.end(),
                   [&](const WayResult& way) { return way.name == name; });
  return way == row.ways.end() ? nullptr : &*way;
}

absl::Status CheckEnough(const Config& config, const EarlierRun& then) {
  if (config.samples < kLeastSamples || config.processes < kLeastStarts) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gate: want --samples ", kLeastSamples, " and --processes ",
        kLeastStarts, " or more with it, got ", config.samples, " and ",
        config.processes));
  }
  for (const int64_t batch : config.batches) {
    const BenchRow* row = RowOf(then.run.rows, batch);
    if (row == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("--gate: want batches of ", then.file, ", got ", batch));
    }
    for (const WayResult& way : row->ways) {
      if (EnoughFor(way.us)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--gate: want ", kLeastSamples, " samples in ",
                       kLeastStarts, " process starts or more of ", then.file,
                       ", got fewer at batch ", batch));
    }
  }
  return absl::OkStatus();
}

bool Fails(const BenchComparison& comparison, const ComparedWay& way) {
  return comparison.gate > 0 && way.ratio.low > 1 + comparison.gate;
}

}  // namespace

absl::StatusOr<EarlierRun> ReadEarlierRun(const Config& config) {
  EarlierRun then{config.compare_file, {}};
  ASSIGN_OR_RETURN(const Json json, ReadJson(then.file));
  ASSIGN_OR_RETURN(then.run, BenchFromJson(json, then.file));
  RETURN_IF_ERROR(CheckSettings(config, json, then.run.environment.cpu));
  const auto known = [&](int64_t batch) {
    return RowOf(then.run.rows, batch) != nullptr;
  };
  if (std::none_of(config.batches.begin(), config.batches.end(), known)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--compare ", then.file, ": want one of its batches, got ",
                     absl::StrJoin(config.batches, ",")));
  }
  if (config.gate > 0) RETURN_IF_ERROR(CheckEnough(config, then));
  return then;
}

absl::StatusOr<BenchComparison> CompareBench(const EarlierRun& then,
                                             const BenchRun& now, double gate) {
  if (std::abs(now.density - then.run.density) > kDensityTolerance) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--compare %s: want rows with a share of %.3f not 0 as in it, got %.3f",
        then.file, then.run.density, now.density));
  }
  BenchComparison comparison;
  comparison.file = then.file;
  comparison.gate = gate;
  comparison.peak_then = then.run.PeakGflops();
  comparison.peak_now = now.PeakGflops();
  const bool peaks = comparison.peak_then > 0 && comparison.peak_now > 0;
  const double factor = peaks ? comparison.peak_now / comparison.peak_then : 1;
  for (const BenchRow& row : now.rows) {
    const std::string batch = absl::StrCat("batch ", row.batch);
    const BenchRow* old_row = RowOf(then.run.rows, row.batch);
    if (old_row == nullptr) {
      comparison.added.push_back(batch);
      continue;
    }
    for (const WayResult& way : row.ways) {
      const WayResult* old_way = WayOf(*old_row, way.name);
      if (old_way == nullptr) {
        comparison.added.push_back(absl::StrCat(batch, " ", way.name));
        continue;
      }
      const Interval raw = UnpairedRatio(way.us, old_way->us);
      const Interval ratio = {raw.value * factor, raw.low * factor,
                              raw.high * factor};
      const bool enough = EnoughFor(way.us) && EnoughFor(old_way->us);
      comparison.ways.push_back(
          {row.batch, way.name, raw, ratio, enough, VerdictOf(ratio, enough)});
    }
    for (const WayResult& old_way : old_row->ways) {
      if (WayOf(row, old_way.name) != nullptr) continue;
      comparison.missing.push_back(absl::StrCat(batch, " ", old_way.name));
    }
  }
  return comparison;
}

Json ToJson(const BenchComparison& comparison) {
  Json json = {{"file", comparison.file},
               {"gate", comparison.gate},
               {"peak_gflops_then", comparison.peak_then},
               {"missing", comparison.missing},
               {"added", comparison.added},
               {"passed", GateStatus(comparison).ok()},
               {"rows", Json::array()}};
  for (const ComparedWay& way : comparison.ways) {
    json["rows"].push_back({{"batch", way.batch},
                            {"way", way.name},
                            {"ratio", way.ratio.value},
                            {"ratio_low", way.ratio.low},
                            {"ratio_high", way.ratio.high},
                            {"raw_ratio", way.raw.value},
                            {"raw_ratio_low", way.raw.low},
                            {"raw_ratio_high", way.raw.high},
                            {"verdict", way.verdict},
                            {"passed", !Fails(comparison, way)}});
  }
  return json;
}

std::string ToText(const BenchComparison& comparison) {
  std::string text = absl::StrCat("time now / time in ", comparison.file, "\n");
  const double then = comparison.peak_then, now = comparison.peak_now;
  if (then > 0 && now > 0) {
    absl::StrAppendFormat(
        &text, "at equal peak: as measured, times %.1f / %.1f GFLOP/s%s\n", now,
        then,
        std::abs(now / then - 1) > kPeakTolerance
            ? ": the machine is not what it was"
            : "");
  }
  absl::StrAppendFormat(&text, "\n  batch %-13s %-24s %s\n", "step",
                        "at equal peak (95 %)", "as measured (95 %)");
  for (const ComparedWay& way : comparison.ways) {
    absl::StrAppendFormat(&text, "%7d %-13s %-24s %-24s %s%s\n", way.batch,
                          way.name, ToText(way.ratio, way.enough),
                          ToText(way.raw, way.enough), way.verdict,
                          Fails(comparison, way) ? ", FAILS" : "");
  }
  for (const std::string& missing : comparison.missing) {
    absl::StrAppend(&text, missing, ": not run now\n");
  }
  for (const std::string& added : comparison.added) {
    absl::StrAppend(&text, added, ": not in ", comparison.file, "\n");
  }
  return text;
}

absl::Status GateStatus(const BenchComparison& comparison) {
  if (comparison.gate == 0) return absl::OkStatus();
  std::vector<std::string> failed;
  for (const ComparedWay& way : comparison.ways) {
    if (!Fails(comparison, way)) continue;
    failed.push_back(absl::StrCat("batch ", way.batch, " ", way.name, " ",
                                  ToText(way.ratio, way.enough)));
  }
  for (const std::string& missing : comparison.missing) {
    failed.push_back(absl::StrCat(missing, " not run"));
  }
  for (const std::string& added : comparison.added) {
    failed.push_back(absl::StrCat(added, " not in it"));
  }
  if (failed.empty()) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrFormat("--gate %g%%: want at most %g of the time in %s, got %s",
                      100 * comparison.gate, 1 + comparison.gate,
                      comparison.file, absl::StrJoin(failed, ", ")));
}

}  // namespace onestep
