// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/affinity.h"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status.h"
#include "runtime/cpu/cpu_info.h"

namespace onestep {
namespace {

// More CPUs than any Linux supports; bounds the memory of "0-999999999".
constexpr int kMaxCpus = 1 << 16;

// Formats {0, 1, 2, 5} as "0-2,5", in the given order.
std::string RangesOf(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    absl::StrAppend(&text, text.empty() ? "" : ",", cpus[i]);
    if (end - i > 1) absl::StrAppend(&text, "-", cpus[end - 1]);
    i = end;
  }
  return text;
}

bool ParseCpu(absl::string_view text, int* cpu) {
  return !text.empty() && absl::ascii_isdigit(text.front()) &&
         absl::SimpleAtoi(text, cpu) && *cpu < kMaxCpus;
}

// Appends the CPUs of "3" or "4-7"; returns false for any other text.
bool AppendRange(absl::string_view text, std::vector<int>* cpus) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits('-', 1));
  int first = 0, last = 0;
  if (!ParseCpu(ends.first, &first)) return false;
  if (!absl::StrContains(text, '-')) {
    last = first;
  } else if (!ParseCpu(ends.second, &last) || last < first) {
    return false;
  }
  for (int cpu = first; cpu <= last; ++cpu) cpus->push_back(cpu);
  return true;
}

}  // namespace

absl::StatusOr<Affinity> ParseAffinity(absl::string_view text) {
  if (text == "none") return Affinity{Affinity::kNone, {}};
  if (text == "compact") return Affinity{Affinity::kCompact, {}};
  Affinity affinity{Affinity::kList, {}};
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    if (AppendRange(part, &affinity.cpus)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("want none, compact or CPUs below ", kMaxCpus,
                     " such as 0,2,4-7, got '", text, "'"));
  }
  std::vector<int> sorted = affinity.cpus;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "want each CPU once, got CPU ", *twice, " twice in '", text, "'"));
  }
  return affinity;
}

std::string ToString(const Affinity& affinity) {
  switch (affinity.kind) {
    case Affinity::kNone:
      return "none";
    case Affinity::kCompact:
      return "compact";
    case Affinity::kList:
      return RangesOf(affinity.cpus);
  }
  return "";
}

absl::StatusOr<std::vector<int>> WorkerCpus(const Affinity& affinity,
                                            int workers,
                                            const std::vector<int>& allowed,
                                            const std::string& root) {
  std::vector<int> cpus;
  if (affinity.kind == Affinity::kNone) return cpus;
  if (affinity.kind == Affinity::kCompact) {
    const std::vector<int> order = CoresFirst(allowed, root);
    CHECK(!order.empty());
    for (int w = 0; w < workers; ++w) cpus.push_back(order[w % order.size()]);
    return cpus;
  }
  if (std::ssize(affinity.cpus) < workers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "affinity ", ToString(affinity), ": want a CPU for each of ", workers,
        " workers, got ", affinity.cpus.size()));
  }
  for (const int cpu : affinity.cpus) {
    if (std::find(allowed.begin(), allowed.end(), cpu) != allowed.end()) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("affinity ", ToString(affinity), ": want CPUs among ",
                     RangesOf(allowed), " that are allowed here, got ", cpu));
  }
  cpus.assign(affinity.cpus.begin(), affinity.cpus.begin() + workers);
  return cpus;
}

absl::Status SetThreadCpus(pthread_t thread, const std::vector<int>& cpus) {
  CHECK(!cpus.empty());
  const int size = 1 + *std::max_element(cpus.begin(), cpus.end());
  const size_t bytes = CPU_ALLOC_SIZE(size);
  cpu_set_t* const mask = CPU_ALLOC(size);
  CPU_ZERO_S(bytes, mask);
  for (const int cpu : cpus) CPU_SET_S(cpu, bytes, mask);
  const int error = pthread_setaffinity_np(thread, bytes, mask);
  CPU_FREE(mask);
  if (error == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(
      error, absl::StrCat("affinity: want a thread on CPUs ", RangesOf(cpus)));
}

}  // namespace onestep
