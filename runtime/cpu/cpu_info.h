// SPDX-License-Identifier: Apache-2.0
// What of this machine's CPU is ours, from Linux's files. `root` stands in
// front of /proc and /sys so that tests can show other machines.
#ifndef ONESTEP_RUNTIME_CPU_CPU_INFO_H_
#define ONESTEP_RUNTIME_CPU_CPU_INFO_H_

#include <string>
#include <vector>

namespace onestep {

// The threads that can run at full speed here: the least of the affinity
// mask, the cgroup quota and the physical cores of the mask; at least 1.
int DefaultThreads();

// The CPUs that this process can keep busy at once: of the affinity mask, as
// many as the cgroup quota allows; at least 1.
int UsableCpus();

// The logical CPUs of the calling thread's affinity mask, ascending.
std::vector<int> AffinityCpus();

// The folders of the cgroups (v1 or v2) around this process whose files say
// what it may take of the CPUs.
std::vector<std::string> CpuCgroups(const std::string& root = "");

// Whole CPUs, rounded up, of the tightest cgroup (v1 or v2) around this
// process; 0: no limit.
int CgroupCpuLimit(const std::string& root = "");

// The cores that `cpus` lie on: two hyper-threads of a core count as one. A
// CPU of which nothing is known counts as a core.
int PhysicalCores(const std::vector<int>& cpus, const std::string& root = "");

// `cpus` in an order in which the first of every core come before the second
// of any: {0, 1, 2, 3} is {0, 2, 1, 3} where 0 and 1 share a core.
std::vector<int> CoresFirst(const std::vector<int>& cpus,
                            const std::string& root = "");

// "AMD EPYC 9654 96-Core Processor", or "unknown".
std::string CpuModelName(const std::string& root = "");

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_CPU_INFO_H_
