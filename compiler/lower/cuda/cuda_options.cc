// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_options.h"

namespace onestep {

const char* ToString(CudaTier tier) {
  switch (tier) {
    case CudaTier::kAuto:
      return "auto";
    case CudaTier::kT0:
      return "t0";
    case CudaTier::kT1:
      return "t1";
    case CudaTier::kT3:
      return "t3";
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
  }
  return "?";
}

}  // namespace onestep
