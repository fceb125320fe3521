// SPDX-License-Identifier: Apache-2.0
// With a tool of the test's own, linked in as NVTX allows.
#define NVTX_NO_IMPL
#include "runtime/base/nvtx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <string>
#include <vector>

namespace {

std::vector<std::string>& Seen() {
  static auto& seen = *new std::vector<std::string>;
  return seen;
}

nvtxDomainHandle_t Create(const char* name) {
  Seen().push_back(std::string("domain ") + name);
  return reinterpret_cast<nvtxDomainHandle_t>(&Seen());
}
int Push(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  Seen().push_back(std::string("begin ") + attributes->message.ascii);
  return 0;
}
int Pop(nvtxDomainHandle_t) {
  Seen().push_back("end");
  return 0;
}

int Attach(NvtxGetExportTableFunc_t get) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) {
    return 0;
  }
  *table[NVTX_CBID_CORE2_DomainCreateA] =
      reinterpret_cast<NvtxFunctionPointer>(Create);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] =
      reinterpret_cast<NvtxFunctionPointer>(Push);
  *table[NVTX_CBID_CORE2_DomainRangePop] =
      reinterpret_cast<NvtxFunctionPointer>(Pop);
  return 1;
}

}  // namespace

NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = Attach;

namespace onestep {
namespace {

TEST(NvtxTest, RangesNestAndEndWithTheirScope) {
  { const ScopedRange compile("compile"); }
  {
    const ScopedRange epoch("epoch", 3, 1);
    const ScopedRange steps("steps", 64, 32);
  }
  EXPECT_THAT(Seen(), testing::ElementsAre("domain onestep", "begin compile",
                                           "end", "begin epoch 3",
                                           "begin steps 64..95", "end", "end"));
}

}  // namespace
}  // namespace onestep
