// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/commands.h"

namespace onestep {

absl::Status RunSweep(const Config& /*config*/, Console& /*console*/) {
  return absl::UnimplementedError("sweep");
}

}  // namespace onestep
