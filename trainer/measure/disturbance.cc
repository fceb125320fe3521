// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/disturbance.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "runtime/base/clock.h"

namespace onestep {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSwitchNs = 3'000'000;

}  // namespace

CoreWaits ReadCoreWaits(const std::string& root) {
  CoreWaits waits;
  std::error_code error;
  fs::directory_iterator task(root + "/proc/self/task", error);
  for (; !error && task != fs::directory_iterator(); task.increment(error)) {
    int64_t ran_ns = 0, waited_ns = 0;
    std::ifstream file(task->path() / "schedstat");
    if (file >> ran_ns >> waited_ns) waits[task->path().filename()] = waited_ns;
  }
  if (!waits.empty()) return waits;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return {{"process", usage.ru_nivcsw * kSwitchNs}};
}

CoreWaits CoreWaitsNow() { return ReadCoreWaits(""); }

Disturbance::Disturbance(CoreWaitsFn waits)
    : waits_(std::move(waits)), before_(waits_()), begin_ns_(NowNs()) {}

bool Disturbance::Seen() const {
  const double limit_ns = kShare * static_cast<double>(NowNs() - begin_ns_);
  const CoreWaits now = waits_();
  return std::any_of(now.begin(), now.end(), [&](const auto& thread) {
    const auto before = before_.find(thread.first);
    const int64_t since = before == before_.end() ? 0 : before->second;
    return static_cast<double>(thread.second - since) > limit_ns;
  });
}

}  // namespace onestep
