// SPDX-License-Identifier: Apache-2.0
// The CPUs that this process may use, read from Linux's /proc and /sys. `root`
// is a prefix of these paths with which tests simulate other machines.
#ifndef ONESTEP_RUNTIME_CPU_CPU_INFO_H_
#define ONESTEP_RUNTIME_CPU_CPU_INFO_H_

#include <string>
#include <vector>

namespace onestep {

// The number of threads that can run at full speed: the minimum of the cgroup
// quota and the number of physical cores in the affinity mask, at least 1.
int DefaultThreads();

// The number of logical CPUs that this process can keep busy: the minimum of
// the affinity mask's size and the cgroup quota, at least 1.
int UsableCpus();

// The logical CPUs of the calling thread's affinity mask, ascending.
std::vector<int> AffinityCpus();

// The folders of the cgroups (v1 or v2) of this process that can limit its CPU
// time, from the innermost group to the mount point.
std::vector<std::string> CpuCgroups(const std::string& root = "");

// The CPU quota of the tightest cgroup (v1 or v2) of this process, rounded up
// to whole CPUs; 0 when there is no limit.
int CgroupCpuLimit(const std::string& root = "");

// The number of physical cores of `cpus`: hyper-threads of a core count once. A
// CPU of unknown topology counts as a core.
int PhysicalCores(const std::vector<int>& cpus, const std::string& root = "");

// `cpus` reordered so that the first hyper-thread of every core comes before
// the second one of any core: {0, 1, 2, 3} becomes {0, 2, 1, 3} when 0 and 1
// share a core, and 2 and 3 do.
std::vector<int> CoresFirst(const std::vector<int>& cpus,
                            const std::string& root = "");

// "AMD EPYC 9654 96-Core Processor", or "unknown".
std::string CpuModelName(const std::string& root = "");

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CPU_CPU_INFO_H_
