// SPDX-License-Identifier: Apache-2.0
#include "trainer/available_memory.h"

#include <fstream>

#include "absl/strings/str_cat.h"

namespace onestep {

int64_t AvailableMemory(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string name, unit;
  int64_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib << 10;
    std::getline(file, unit);
  }
  return -1;
}

absl::Status CheckMemory(const std::string& what, int64_t bytes,
                         int64_t available) {
  if (available < 0 || bytes <= available) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " want ", bytes >> 20, " MiB of memory, ",
                   available >> 20, " are available"));
}

}  // namespace onestep
