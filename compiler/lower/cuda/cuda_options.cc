// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_options.h"

namespace onestep {

const char* ToString(CudaTier tier) {
  switch (tier) {
    case CudaTier::kAuto:
      return "auto";
    case CudaTier::kLibrary:
      return "library";
    case CudaTier::kFused:
      return "fused";
    case CudaTier::kPersistent:
      return "persistent";
  }
  return "?";
}

const char* ToString(CudaFirstLayer first_layer) {
  switch (first_layer) {
    case CudaFirstLayer::kAuto:
      return "auto";
    case CudaFirstLayer::kFma:
      return "fma";
    case CudaFirstLayer::kSplit:
      return "split";
    case CudaFirstLayer::kBf16:
      return "bf16";
  }
  return "?";
}

}  // namespace onestep
