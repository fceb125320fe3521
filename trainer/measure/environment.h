// SPDX-License-Identifier: Apache-2.0
// What else than the program makes its times what they are.
#ifndef ONESTEP_TRAINER_MEASURE_ENVIRONMENT_H_
#define ONESTEP_TRAINER_MEASURE_ENVIRONMENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "nlohmann/json_fwd.hpp"

namespace onestep {

// From Linux's files; nullopt and "unknown": these do not say.
struct Environment {
  std::string cpu;
  // Of the clocks of the CPUs that this process may use, joined by "+" where
  // they differ.
  std::string governor;
  std::optional<double> load_before;  // average of the minute before
  std::optional<int> quota_cpus;      // of the cgroup, rounded up; 0: none
  // During the run: how long the quota held a CPU back, the most of any cgroup
  // around this process, and the share of the machine's CPU time that the
  // hypervisor gave to others.
  std::optional<double> throttled_ms;
  std::optional<double> steal_share;
};

nlohmann::ordered_json ToJson(const Environment& environment);

// In one line: "governor performance, load 0.1 before, ...".
std::string ToString(const Environment& environment);

// Watches from its making on. `root` stands in front of /proc and /sys so that
// tests can show other machines.
class EnvironmentWatch {
 public:
  explicit EnvironmentWatch(const std::string& root = "");

  Environment SoFar() const;

 private:
  struct CpuTime {
    double stolen = 0, all = 0;
  };

  std::optional<CpuTime> ReadCpuTime() const;
  std::map<std::string, double> ReadThrottledMs() const;  // by cgroup

  const std::string root_;
  const std::optional<double> load_before_;
  const std::optional<CpuTime> cpu_time_;
  const std::map<std::string, double> throttled_ms_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_ENVIRONMENT_H_
