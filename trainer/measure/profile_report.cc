// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/profile_report.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

Json NumberOrNull(double value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

// The label without the op in front.
std::string ShapeOf(const StepInfo& step) {
  absl::string_view shape = step.label;
  if (absl::ConsumePrefix(&shape, step.op)) {
    shape = absl::StripLeadingAsciiWhitespace(shape);
  }
  return std::string(shape);
}

// Whether there is a value per step, not a remainder of means.
bool HasSteps(const ProfileRow& row) {
  return row.kind != ProfileKind::kUnaccounted;
}

Json ToJson(const ProfileRow& row) {
  Json json;
  json["worker"] = row.worker;
  json["kind"] = ToString(row.kind);
  json["op"] = row.step.op;
  json["phase"] = row.step.phase;
  json["shape"] = ShapeOf(row.step);
  json["mean_us"] = row.mean_us;
  const bool has_steps = HasSteps(row);
  json["median_us"] = has_steps ? Json(row.median_us) : Json(nullptr);
  json["p95_us"] = has_steps ? Json(row.p95_us) : Json(nullptr);
  json["share"] = row.share;
  json["gflops"] = NumberOrNull(row.gflops);
  json["gbs"] = NumberOrNull(row.gbs);
  json["roofline"] = NumberOrNull(row.roofline);
  json["implementation"] = row.step.implementation;
  json["fused_from"] = row.step.fused_from;
  return json;
}

Json ToJson(const CudaAccounting& accounting) {
  Json json;
  json["note"] = accounting.note;
  json["steps"] = accounting.steps;
  json["us"] = accounting.us;
  json["calls"] = Json::array();
  for (const CudaCallStats& call : accounting.calls) {
    json["calls"].push_back({{"call", call.call},
                             {"calls", call.calls},
                             {"total_us", call.total_us},
                             {"share", call.total_us / accounting.us}});
  }
  return json;
}

std::string ToText(const CudaAccounting& accounting) {
  if (!accounting.note.empty()) return absl::StrCat(accounting.note, "\n");
  std::string text = absl::StrFormat(
      "calls of CUDA in %d steps, %.0f us (CUPTI counts them and slows each)\n"
      "%-36s %10s %12s %12s %8s\n",
      accounting.steps, accounting.us, "call", "calls", "total us",
      "average us", "% time");
  for (const CudaCallStats& call : accounting.calls) {
    absl::StrAppendFormat(&text, "%-36s %10d %12.1f %12.3f %8.1f\n", call.call,
                          call.calls, call.total_us,
                          call.total_us / static_cast<double>(call.calls),
                          100 * call.total_us / accounting.us);
  }
  return text;
}

std::string Rate(double value) {
  return value > 0 ? absl::StrFormat("%.1f", value) : "";
}

std::string RowText(const ProfileRow& row) {
  const auto of_steps = [&row](double us) {
    return HasSteps(row) ? absl::StrFormat("%.3f", us) : "";
  };
  return absl::StrFormat(
      "%-8s  %-15s %8.3f %8s %8s %6.1f %8s %7s %6s  %-18s  %s\n",
      row.step.phase, row.step.op, row.mean_us, of_steps(row.median_us),
      of_steps(row.p95_us), 100 * row.share, Rate(row.gflops), Rate(row.gbs),
      row.roofline > 0 ? absl::StrFormat("%.0f %%", 100 * row.roofline) : "",
      row.step.implementation, ShapeOf(row.step));
}

// Whether the fused step's row does the work of the unfused one's, or is of
// its kind where rows are no calls.
bool IsPartOf(const ProfileRow& unfused, const ProfileRow& fused) {
  if (unfused.kind != fused.kind) return false;
  if (fused.kind != ProfileKind::kOp) return true;
  return std::any_of(unfused.step.origins.begin(), unfused.step.origins.end(),
                     [&](int origin) {
                       return std::count(fused.step.origins.begin(),
                                         fused.step.origins.end(), origin) > 0;
                     });
}

// Below the table.
std::string TotalsText(const Profile& profile) {
  std::string text =
      absl::StrFormat("step undisturbed %.3f us (slices from %.3f to %.3f)",
                      profile.undisturbed_us, profile.undisturbed_low_us,
                      profile.undisturbed_high_us);
  if (profile.steps > 0) {
    absl::StrAppendFormat(
        &text, ", profiled %.3f us (%+.1f %%), over %d steps",
        profile.profiled_us,
        100 * (profile.profiled_us / profile.undisturbed_us - 1),
        profile.steps);
  }
  absl::StrAppend(&text, "\n");
  if (profile.accounting) {
    if (profile.steps > 0) {
      absl::StrAppendFormat(
          &text,
          "rows are the device's times, by events, of calls that the host "
          "waits for; taken off: %.1f ns a call, an empty kernel's\n",
          profile.cost.clock_ns);
    }
    return absl::StrCat(text, ToText(*profile.accounting));
  }
  absl::StrAppendFormat(
      &text,
      "taken off: %.1f ns a call for the clock, whose readings are %.1f ns "
      "apart; dispatch: %.1f ns a call, "
      "%.0f ns a oneDNN matmul, %.0f ns another primitive\n"
      "roofs%s: %.1f GFLOP/s of multiply-adds, %.1f GB/s of a copy in as much "
      "memory; above 100 %%: the call's data lie in a nearer cache\n",
      profile.cost.clock_ns, profile.cost.clock_step_ns, profile.cost.call_ns,
      profile.cost.matmul_ns, profile.cost.eltwise_ns,
      profile.workers > 1 ? " of a worker" : "", profile.peak_gflops,
      profile.bandwidth_gbs);
  return text;
}

}  // namespace

Json ToJson(const Profile& profile) {
  Json json;
  json["name"] = profile.name;
  json["lowering"] = profile.lowering;
  json["device"] = NameOf(profile.device);
  json["dispatch"] = NameOf(profile.dispatch);
  json["batch"] = profile.batch;
  json["steps"] = profile.steps;
  json["workers"] = profile.workers;
  json["undisturbed_us"] = profile.undisturbed_us;
  json["undisturbed_low_us"] = profile.undisturbed_low_us;
  json["undisturbed_high_us"] = profile.undisturbed_high_us;
  json["profiled_us"] = profile.profiled_us;
  json["clock_ns"] = profile.cost.clock_ns;
  json["clock_step_ns"] = profile.cost.clock_step_ns;
  json["call_ns"] = profile.cost.call_ns;
  json["matmul_primitive_ns"] = profile.cost.matmul_ns;
  json["eltwise_primitive_ns"] = profile.cost.eltwise_ns;
  json["peak_gflops"] = profile.peak_gflops;
  json["bandwidth_gbs"] = profile.bandwidth_gbs;
  if (profile.accounting) json["accounting"] = ToJson(*profile.accounting);
  json["busy"] = profile.busy;
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
  absl::StrAppend(&text, TotalsText(profile));
  if (!profile.note.empty()) {
    absl::StrAppend(&text, "note: ", profile.note, "\n");
  }
  return text;
}

std::string RatioText(const Interval& ratio) {
  return absl::StrFormat("%.2f (95 %%: %.2f to %.2f)%s", ratio.value, ratio.low,
                         ratio.high,
                         ratio.Holds(1) ? ", no measurable difference" : "");
}

Json RatioToJson(const Profile& unfused, const Profile& fused) {
  const Interval ratio = RatioOf(unfused, fused);
  return {{"value", ratio.value},
          {"low", ratio.low},
          {"high", ratio.high},
          {"busy", unfused.busy || fused.busy}};
}

std::string CompareText(const Profile& unfused, const Profile& fused) {
  const auto line = [](const ProfileRow& row, const std::string& from,
                       double unfused_us, const std::string& fused_us,
                       const std::string& to) {
    return absl::StrFormat("%-8s  %-52s %10.3f %10s  %s\n", row.step.phase,
                           from, unfused_us, fused_us, to);
  };
  std::string text =
      absl::StrFormat("%-8s  %-52s %10s %10s  %s\n", "phase", "textbook ops",
                      "unfused us", "fused us", "fused into");
  std::set<const ProfileRow*> taken;
  for (const ProfileRow& row : fused.rows) {
    if (row.worker != 0) continue;
    double us = 0;
    std::vector<std::string> from;
    for (const ProfileRow& other : unfused.rows) {
      if (other.worker != 0 || !IsPartOf(other, row)) continue;
      if (!taken.insert(&other).second) continue;
      us += other.mean_us;
      from.push_back(other.step.op);
    }
    absl::StrAppend(&text,
                    line(row, absl::StrJoin(from, " + "), us,
                         absl::StrFormat("%.3f", row.mean_us), row.step.op));
  }
  for (const ProfileRow& row : unfused.rows) {
    if (row.worker != 0 || taken.count(&row) > 0) continue;
    absl::StrAppend(&text, line(row, row.step.op, row.mean_us, "", "nothing"));
  }
  absl::StrAppendFormat(
      &text,
      "%-8s  %-52s %10.3f %10.3f\n"
      "unfused / fused, of slices in turn: %s%s\n",
      "", "step undisturbed", unfused.undisturbed_us, fused.undisturbed_us,
      RatioText(RatioOf(unfused, fused)),
      unfused.busy || fused.busy ? "; the machine was busy" : "");
  return text;
}

}  // namespace onestep
