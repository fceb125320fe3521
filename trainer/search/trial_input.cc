// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/trial_input.h"

#include <cstdint>

namespace onestep {

bool WalksNonzeros(InputMode mode, const ModelSpec& model, double density,
                   const CompileOptions& compile) {
  if (mode != InputMode::kAuto) return mode == InputMode::kSparse;
  constexpr double kDensity = 0.6;
  constexpr int64_t kWidth = 16;
  return compile.device == Device::kCpu && compile.fuse &&
         compile.disabled_passes.empty() && density < kDensity &&
         model.widths[1] >= kWidth;
}

}  // namespace onestep
