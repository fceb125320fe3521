// SPDX-License-Identifier: Apache-2.0
#include "trainer/machine_info.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/probe.h"
#include "runtime/base/status.h"
#include "runtime/cpu/cpu_info.h"
#include "runtime/cuda/cuda_api.h"
#include "trainer/version.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

// "Debian GNU/Linux 12 (bookworm), Linux 6.1.0 x86_64"
std::string OsName() {
  std::string name;
  std::ifstream file("/etc/os-release");
  for (std::string line; std::getline(file, line);) {
    absl::string_view value = line;
    if (!absl::ConsumePrefix(&value, "PRETTY_NAME=")) continue;
    absl::ConsumePrefix(&value, "\"");
    absl::ConsumeSuffix(&value, "\"");
    name = absl::StrCat(value, ", ");
  }
  utsname kernel = {};
  if (uname(&kernel) != 0) return absl::StrCat(name, "unknown kernel");
  return absl::StrCat(name, kernel.sysname, " ", kernel.release, " ",
                      kernel.machine);
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Of the first CPU: "L1d 48K", "L2 1024K", ...
std::vector<std::string> Caches() {
  std::vector<std::string> caches;
  for (int index = 0;; ++index) {
    const std::string dir =
        absl::StrCat("/sys/devices/system/cpu/cpu0/cache/index", index, "/");
    const std::string level = FirstLine(dir + "level");
    if (level.empty()) return caches;
    const std::string type = FirstLine(dir + "type");
    const char* const letter = type == "Data"          ? "d"
                               : type == "Instruction" ? "i"
                                                       : "";
    caches.push_back(
        absl::StrCat("L", level, letter, " ", FirstLine(dir + "size")));
  }
}

Json CpuJson() {
  const std::vector<int> cpus = AffinityCpus();
  Json json;
  json["model"] = CpuModelName();
  json["isa"] = CpuIsa();
  json["affinity_cpus"] = cpus.size();
  json["physical_cores"] = PhysicalCores(cpus);
  const int limit = CgroupCpuLimit();
  json["cgroup_limit"] = limit > 0 ? Json(limit) : Json(nullptr);
  json["default_threads"] = DefaultThreads();
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
    if (const char* const value = std::getenv(name)) json[name] = value;
  }
  json["caches"] = Caches();
  return json;
}

}  // namespace

Json BuildAndCpu() {
  Json json;
  json["onestep"] = Version();
  json["build"] = BuildName();
  json["cpu"] = CpuJson();
  for (const auto& [name, version] : LibraryVersions()) {
    json["libraries"][name] = version;
  }
  return json;
}

absl::StatusOr<std::vector<std::string>> GpuNames() {
  ASSIGN_OR_RETURN(CudaApi* const cuda, FindCuda());
  ASSIGN_OR_RETURN(const std::vector<CudaDevice> devices, cuda->Devices());
  std::vector<std::string> names;
  for (const CudaDevice& device : devices) names.push_back(device.ToString());
  return names;
}

Json MachineInfo() {
  Json json = BuildAndCpu();
  json["os"] = OsName();
  json["gpus"] = Json::array();
  const absl::StatusOr<std::vector<std::string>> gpus = GpuNames();
  if (gpus.ok()) {
    json["gpus"] = *gpus;
  } else {
    json["no_gpu_because"] = std::string(gpus.status().message());
  }
  return json;
}

}  // namespace onestep
