// SPDX-License-Identifier: Apache-2.0
#include "trainer/profile_report.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

Json NumberOrNull(double value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

Json ToJson(const ProfileRow& row) {
  Json json;
  json["worker"] = row.worker;
  json["kind"] = ToString(row.kind);
  json["op"] = row.step.op;
  json["phase"] = row.step.phase;
  json["shape"] = row.step.label;
  json["mean_us"] = row.mean_us;
  json["median_us"] = row.median_us;
  json["p95_us"] = row.p95_us;
  json["share"] = row.share;
  json["gflops"] = NumberOrNull(row.gflops);
  json["gbs"] = NumberOrNull(row.gbs);
  json["roofline"] = NumberOrNull(row.roofline);
  json["implementation"] = row.step.implementation;
  json["fused_from"] = row.step.fused_from;
  return json;
}

std::string Rate(double value) {
  return value > 0 ? absl::StrFormat("%.1f", value) : "";
}

std::string RowText(const ProfileRow& row) {
  absl::string_view shape = row.step.label;
  if (absl::ConsumePrefix(&shape, row.step.op)) {
    shape = absl::StripLeadingAsciiWhitespace(shape);
  }
  return absl::StrFormat(
      "%-8s  %-15s %8.3f %8.3f %8.3f %6.1f %8s %7s %6s  %-18s  %s\n",
      row.step.phase, row.step.op, row.mean_us, row.median_us, row.p95_us,
      100 * row.share, Rate(row.gflops), Rate(row.gbs),
      row.roofline > 0 ? absl::StrFormat("%.0f %%", 100 * row.roofline) : "",
      row.step.implementation, shape);
}

// "matmul + add_bias" -> both; of an op that was not fused, itself.
std::vector<std::string> OriginsOf(const StepInfo& step) {
  if (step.fused_from.empty()) return {step.op};
  return absl::StrSplit(step.fused_from, " + ");
}

bool IsCall(const ProfileRow& row) {
  return row.kind == ProfileKind::kOp || row.kind == ProfileKind::kExchange ||
         row.kind == ProfileKind::kWait;
}

}  // namespace

Json ToJson(const Profile& profile) {
  Json json;
  json["name"] = profile.name;
  json["lowering"] = profile.lowering;
  json["steps"] = profile.steps;
  json["workers"] = profile.workers;
  json["undisturbed_us"] = profile.undisturbed_us;
  json["undisturbed_low_us"] = profile.undisturbed_low_us;
  json["undisturbed_high_us"] = profile.undisturbed_high_us;
  json["profiled_us"] = profile.profiled_us;
  json["clock_ns"] = profile.cost.clock_ns;
  json["call_ns"] = profile.cost.call_ns;
  json["matmul_primitive_ns"] = profile.cost.matmul_ns;
  json["eltwise_primitive_ns"] = profile.cost.eltwise_ns;
  json["peak_gflops"] = profile.peak_gflops;
  json["bandwidth_gbs"] = profile.bandwidth_gbs;
  json["note"] = profile.note;
  json["rows"] = Json::array();
  for (const ProfileRow& row : profile.rows)
    json["rows"].push_back(ToJson(row));
  return json;
}

std::string ToText(const Profile& profile) {
  std::string text = absl::StrCat(profile.name, ": ", profile.lowering, "\n");
  int worker = -1;
  for (const ProfileRow& row : profile.rows) {
    if (row.worker != worker) {
      worker = row.worker;
      if (profile.workers > 1) absl::StrAppend(&text, "worker ", worker, "\n");
      absl::StrAppendFormat(
          &text, "%-8s  %-15s %8s %8s %8s %6s %8s %7s %6s  %-18s  %s\n",
          "phase", "op", "mean us", "median", "p95", "% step", "GFLOP/s",
          "GB/s", "roof", "implementation", "shape");
    }
    absl::StrAppend(&text, RowText(row));
  }
  absl::StrAppendFormat(
      &text,
      "step undisturbed %.3f us (slices from %.3f to %.3f), profiled %.3f us "
      "(%+.1f %%), over %d steps\n"
      "taken off: a clock read of %.1f ns per call; dispatch: %.1f ns a call, "
      "%.0f ns a oneDNN matmul, %.0f ns another primitive\n"
      "roofs%s: %.1f GFLOP/s of multiply-adds, %.1f GB/s of a copy in as much "
      "memory\n",
      profile.undisturbed_us, profile.undisturbed_low_us,
      profile.undisturbed_high_us, profile.profiled_us,
      100 * (profile.profiled_us / profile.undisturbed_us - 1), profile.steps,
      profile.cost.clock_ns, profile.cost.call_ns, profile.cost.matmul_ns,
      profile.cost.eltwise_ns, profile.workers > 1 ? " of a worker" : "",
      profile.peak_gflops, profile.bandwidth_gbs);
  if (!profile.note.empty())
    absl::StrAppend(&text, "note: ", profile.note, "\n");
  return text;
}

std::string CompareText(const Profile& unfused, const Profile& fused) {
  std::set<const ProfileRow*> taken;
  // Fusion keeps the order of ops of one name: the first that is left.
  const auto take = [&](const std::string& op) -> const ProfileRow* {
    for (const ProfileRow& row : unfused.rows) {
      if (row.worker == 0 && IsCall(row) && row.step.op == op &&
          taken.insert(&row).second) {
        return &row;
      }
    }
    return nullptr;
  };
  std::string text =
      absl::StrFormat("%-8s  %-52s %9s  %9s  %s\n", "phase", "textbook ops",
                      "unfused", "fused us", "fused");
  for (const ProfileRow& row : fused.rows) {
    if (row.worker != 0) continue;
    double us = 0;
    std::string from;
    if (IsCall(row)) {
      for (const std::string& op : OriginsOf(row.step)) {
        const ProfileRow* const origin = take(op);
        if (origin == nullptr) continue;
        us += origin->mean_us;
        absl::StrAppend(&from, from.empty() ? "" : " + ", op);
      }
    } else {
      for (const ProfileRow& other : unfused.rows) {
        if (other.worker == 0 && other.kind == row.kind) us += other.mean_us;
      }
      from = row.step.op;
    }
    absl::StrAppendFormat(&text, "%-8s  %-52s %9.3f  %9.3f  %s\n",
                          row.step.phase, from, us, row.mean_us, row.step.op);
  }
  for (const ProfileRow& row : unfused.rows) {
    if (row.worker != 0 || !IsCall(row) || taken.count(&row) > 0) continue;
    absl::StrAppendFormat(&text, "%-8s  %-52s %9.3f  %9s  fused away\n",
                          row.step.phase, row.step.op, row.mean_us, "");
  }
  absl::StrAppendFormat(&text, "%-8s  %-52s %9.3f  %9.3f  %.2fx\n", "",
                        "step undisturbed", unfused.undisturbed_us,
                        fused.undisturbed_us,
                        unfused.undisturbed_us / fused.undisturbed_us);
  return text;
}

}  // namespace onestep
