// SPDX-License-Identifier: Apache-2.0
#include "trainer/version.h"

#include <zlib.h>

#include "CLI/Version.hpp"
#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "hwy/highway.h"
#include "kernels/probe.h"
#include "nlohmann/json.hpp"
#include "runtime/cpu/onednn.h"
#include "runtime/cuda/cuda_api.h"

namespace onestep {
namespace {

std::string CompilerName() {
#if defined(__clang__)
  return absl::StrCat("clang ", __clang_version__);
#else
  return absl::StrCat("g++ ", __VERSION__);
#endif
}

std::string AbseilName() {
#if defined(ABSL_LTS_RELEASE_VERSION)
  return absl::StrCat(ABSL_LTS_RELEASE_VERSION);
#else
  return "head";
#endif
}

}  // namespace

std::string Version() { return ONESTEP_VERSION; }

std::string BuildName() { return ONESTEP_BUILD; }

std::vector<std::pair<std::string, std::string>> LibraryVersions() {
  const absl::StatusOr<CudaApi*> cuda = FindCuda();
  return {
      {"compiler", CompilerName()},
      {"oneDNN", OnednnVersion()},
      {"team kernels", TeamLibrary()},
      {"Abseil", AbseilName()},
      {"Highway", absl::StrCat(HWY_MAJOR, ".", HWY_MINOR, ".", HWY_PATCH)},
      {"CLI11", CLI11_VERSION},
      {"nlohmann-json", absl::StrCat(NLOHMANN_JSON_VERSION_MAJOR, ".",
                                     NLOHMANN_JSON_VERSION_MINOR, ".",
                                     NLOHMANN_JSON_VERSION_PATCH)},
      {"zlib", zlibVersion()},
      {"CUDA runtime", cuda.ok() ? (*cuda)->RuntimeVersion() : "none"},
  };
}

std::string VersionText() {
  std::string text = absl::StrCat("onestep ", Version());
  for (const auto& [name, version] : LibraryVersions()) {
    absl::StrAppend(&text, "\n", name, " ", version);
  }
  absl::StrAppend(&text, "\nISA ", CpuIsa());
  return text;
}

}  // namespace onestep
