// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/cpu_info.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace onestep {
namespace {

// The lines of a file; empty when it cannot be read.
std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string FirstLine(const std::string& path) {
  const std::vector<std::string> lines = ReadLines(path);
  return lines.empty() ? "" : lines.front();
}

// quota / period, rounded up; 0 (no limit) for "max", -1 and any other text
// that is not a positive number.
int CpusOf(absl::string_view quota_text, absl::string_view period_text) {
  int64_t quota = 0, period = 0;
  if (!absl::SimpleAtoi(quota_text, &quota) ||
      !absl::SimpleAtoi(period_text, &period) || quota <= 0 || period <= 0) {
    return 0;
  }
  const int64_t cpus = quota / period + (quota % period == 0 ? 0 : 1);
  return static_cast<int>(std::min<int64_t>(cpus, 1 << 20));
}

int LimitOfGroup(const std::string& dir) {
  const std::vector<std::string> v2 =
      absl::StrSplit(FirstLine(dir + "/cpu.max"), ' ');
  if (v2.size() == 2) return CpusOf(v2[0], v2[1]);
  return CpusOf(FirstLine(dir + "/cpu.cfs_quota_us"),
                FirstLine(dir + "/cpu.cfs_period_us"));
}

// Appends the existing folders of a group and its parents, up to the mount
// point. In a container the group's path may lie outside the mounted tree, so
// that only the mount point exists.
void AddGroups(const std::string& mount, std::string group,
               std::vector<std::string>& groups) {
  while (true) {
    const std::string folder = mount + group;
    std::error_code ignored;
    if (std::filesystem::is_directory(folder, ignored)) {
      groups.push_back(folder);
    }
    if (group.empty()) return;
    group.resize(group.find_last_of('/'));
  }
}

// A name of the physical core of `cpu`.
std::string CoreOf(int cpu, const std::string& root) {
  // The list of a core's threads is the same for all of them.
  const std::string threads =
      FirstLine(absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu,
                             "/topology/thread_siblings_list"));
  return threads.empty() ? absl::StrCat("cpu ", cpu) : threads;
}

}  // namespace

int DefaultThreads() {
  return std::max(1, std::min(PhysicalCores(AffinityCpus()), UsableCpus()));
}

int UsableCpus() {
  int cpus = static_cast<int>(AffinityCpus().size());
  const int limit = CgroupCpuLimit();
  if (limit > 0) cpus = std::min(cpus, limit);
  return std::max(cpus, 1);
}

std::vector<int> AffinityCpus() {
  std::vector<int> cpus;
  // The call fails with EINVAL when the machine has more CPUs than the mask.
  for (size_t size = CPU_SETSIZE; size <= (1u << 16); size *= 2) {
    cpu_set_t* const mask = CPU_ALLOC(size);
    const size_t bytes = CPU_ALLOC_SIZE(size);
    const bool ok = sched_getaffinity(0, bytes, mask) == 0;
    for (size_t cpu = 0; ok && cpu < size; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, mask)) cpus.push_back(static_cast<int>(cpu));
    }
    CPU_FREE(mask);
    if (ok) return cpus;
  }
  const int count = static_cast<int>(std::thread::hardware_concurrency());
  for (int cpu = 0; cpu < count; ++cpu) cpus.push_back(cpu);
  return cpus;
}

std::vector<std::string> CpuCgroups(const std::string& root) {
  std::vector<std::string> groups;
  for (const std::string& line : ReadLines(root + "/proc/self/cgroup")) {
    // "0::/user.slice" in v2, "4:cpu,cpuacct:/docker/1f" in v1.
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || !absl::StartsWith(fields[2], "/")) continue;
    const std::string group(absl::StripSuffix(fields[2], "/"));
    std::vector<std::string> mounts;
    if (fields[1].empty()) {
      mounts = {"", "/unified"};
    } else {
      const std::vector<std::string> names = absl::StrSplit(fields[1], ',');
      if (std::find(names.begin(), names.end(), "cpu") == names.end()) continue;
      mounts = {"/cpu", "/" + fields[1]};
    }
    for (const std::string& mount : mounts) {
      AddGroups(absl::StrCat(root, "/sys/fs/cgroup", mount), group, groups);
    }
  }
  return groups;
}

int CgroupCpuLimit(const std::string& root) {
  int tightest = 0;
  for (const std::string& group : CpuCgroups(root)) {
    const int limit = LimitOfGroup(group);
    if (limit > 0 && (tightest == 0 || limit < tightest)) tightest = limit;
  }
  return tightest;
}

int PhysicalCores(const std::vector<int>& cpus, const std::string& root) {
  std::set<std::string> cores;
  for (const int cpu : cpus) cores.insert(CoreOf(cpu, root));
  return static_cast<int>(cores.size());
}

std::vector<int> CoresFirst(const std::vector<int>& cpus,
                            const std::string& root) {
  std::map<std::string, int> seen;  // number of CPUs so far, by core
  std::vector<std::pair<int, int>> ranked;
  for (const int cpu : cpus) ranked.push_back({seen[CoreOf(cpu, root)]++, cpu});
  std::stable_sort(
      ranked.begin(), ranked.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<int> order;
  for (const auto& [rank, cpu] : ranked) order.push_back(cpu);
  return order;
}

std::string CpuModelName(const std::string& root) {
  for (const std::string& line : ReadLines(root + "/proc/cpuinfo")) {
    if (!absl::StartsWith(line, "model name")) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    return std::string(
        absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1)));
  }
  return "unknown";
}

}  // namespace onestep
