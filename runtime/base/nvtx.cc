// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/nvtx.h"

#include <nvtx3/nvToolsExt.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace onestep {
namespace {

// Null when no profiler is attached at the first call.
nvtxDomainHandle_t Domain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("onestep");
  return domain;
}

void Push(const std::string& name) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  nvtxDomainRangePushEx(Domain(), &attributes);
}

}  // namespace

ScopedRange::ScopedRange(absl::string_view name) {
  if (Domain() != nullptr) Push(std::string(name));
}

ScopedRange::ScopedRange(absl::string_view name, int64_t first, int64_t n) {
  if (Domain() == nullptr) return;
  std::string text = absl::StrCat(name, " ", first);
  if (n > 1) absl::StrAppend(&text, "..", first + n - 1);
  Push(text);
}

ScopedRange::~ScopedRange() {
  if (Domain() != nullptr) nvtxDomainRangePop(Domain());
}

}  // namespace onestep
