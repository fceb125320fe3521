// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/environment.h"

#include <algorithm>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/cpu/cpu_info.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kUnknown[] = "unknown";

std::optional<double> ReadLoad(const std::string& root) {
  double load = 0;
  std::ifstream file(root + "/proc/loadavg");
  return file >> load ? std::optional(load) : std::nullopt;
}

std::string ReadGovernor(const std::string& root) {
  std::set<std::string> governors;
  for (const int cpu : AffinityCpus()) {
    std::ifstream file(absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu,
                                    "/cpufreq/scaling_governor"));
    std::string governor;
    governors.insert(file >> governor ? governor : kUnknown);
  }
  return absl::StrJoin(governors, "+");
}

// The milliseconds of a group's cpu.stat, of cgroup v2 or v1.
std::optional<double> ThrottledMsOf(const std::string& group) {
  std::ifstream file(group + "/cpu.stat");
  std::string name;
  for (double value = 0; file >> name >> value;) {
    if (name == "throttled_usec") return value * 1e-3;
    if (name == "throttled_time") return value * 1e-6;
  }
  return std::nullopt;
}

template <typename T>
Json OrUnknown(const std::optional<T>& value) {
  return value ? Json(*value) : Json(kUnknown);
}

}  // namespace

Json ToJson(const Environment& environment) {
  return {{"cpu", environment.cpu},
          {"governor", environment.governor},
          {"load_before", OrUnknown(environment.load_before)},
          {"quota_cpus", environment.quota_cpus == 0
                             ? "none"
                             : OrUnknown(environment.quota_cpus)},
          {"throttled_ms", OrUnknown(environment.throttled_ms)},
          {"steal_share", OrUnknown(environment.steal_share)}};
}

std::string ToString(const Environment& environment) {
  const auto rounded = [](const std::optional<double>& value, int digits) {
    return value ? absl::StrFormat("%.*f", digits, *value) : kUnknown;
  };
  std::string quota = kUnknown;
  if (environment.quota_cpus) {
    const int cpus = *environment.quota_cpus;
    quota = cpus == 0 ? "none" : absl::StrCat(cpus, " CPUs");
  }
  std::optional<double> steal_percent = environment.steal_share;
  if (steal_percent) *steal_percent *= 100;
  return absl::StrCat("governor ", environment.governor, ", load ",
                      rounded(environment.load_before, 1), " before, quota ",
                      quota, ", ms throttled ",
                      rounded(environment.throttled_ms, 0), ", steal % ",
                      rounded(steal_percent, 1));
}

EnvironmentWatch::EnvironmentWatch(const std::string& root)
    : root_(root),
      load_before_(ReadLoad(root)),
      cpu_time_(ReadCpuTime()),
      throttled_ms_(ReadThrottledMs()) {}

Environment EnvironmentWatch::SoFar() const {
  Environment environment;
  environment.cpu = CpuModelName(root_);
  environment.governor = ReadGovernor(root_);
  environment.load_before = load_before_;
  if (!CpuCgroups(root_).empty()) {
    environment.quota_cpus = CgroupCpuLimit(root_);
  }
  for (const auto& [group, ms] : ReadThrottledMs()) {
    const auto before = throttled_ms_.find(group);
    if (before == throttled_ms_.end()) continue;
    environment.throttled_ms =
        std::max(environment.throttled_ms, std::optional(ms - before->second));
  }
  const std::optional<CpuTime> time = ReadCpuTime();
  if (time && cpu_time_ && time->all > cpu_time_->all) {
    environment.steal_share =
        (time->stolen - cpu_time_->stolen) / (time->all - cpu_time_->all);
  }
  return environment;
}

std::optional<EnvironmentWatch::CpuTime> EnvironmentWatch::ReadCpuTime() const {
  // "cpu" and user, nice, system, idle, iowait, irq, softirq, steal.
  constexpr int kColumns = 8;
  std::ifstream file(root_ + "/proc/stat");
  std::string name;
  if (!(file >> name) || name != "cpu") return std::nullopt;
  CpuTime time;
  for (int column = 0; column < kColumns; ++column) {
    if (!(file >> time.stolen)) return std::nullopt;
    time.all += time.stolen;
  }
  return time;
}

std::map<std::string, double> EnvironmentWatch::ReadThrottledMs() const {
  std::map<std::string, double> by_group;
  for (const std::string& group : CpuCgroups(root_)) {
    if (const auto ms = ThrottledMsOf(group)) by_group[group] = *ms;
  }
  return by_group;
}

}  // namespace onestep
