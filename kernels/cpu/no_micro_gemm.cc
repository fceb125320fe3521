// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/micro_gemm.h"

namespace onestep::cpu {

MicroGemm MakeMicroGemm(const MicroGemmShape& /*shape*/) { return nullptr; }

const char* MicroGemmLibrary() { return nullptr; }

}  // namespace onestep::cpu
