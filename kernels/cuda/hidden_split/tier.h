// SPDX-License-Identifier: Apache-2.0
// How a train step runs on a GPU: what the flags --tier and --first-layer name,
// the compiler chooses and the kernels are told.
#ifndef ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_TIER_H_
#define ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_TIER_H_

#include <cstdint>

namespace onestep {

enum class CudaTier : uint8_t {
  kAuto,     // the first of persistent, fused and library that takes the step
  kLibrary,  // cuBLASLt's matmuls, a kernel of ours for every other op
  kFused,    // three kernels: forward, loss, backward
  kPersistent,  // one kernel for many steps
};

// How the tiers fused and persistent multiply the bytes of the input by the
// weights of the first layer. Bytes are exact in bf16. Tensor cores therefore
// give the products of fp32 when each weight is the sum of three bf16 numbers
// (24 bits).
enum class CudaFirstLayer : uint8_t {
  kAuto,   // the trainer times kFma and kSplit; the compiler takes kFma
  kFma,    // fp32 multiply-adds
  kSplit,  // tensor cores, weights as sums of three bf16 numbers
  kBf16,   // tensor cores, weights rounded to bf16: --math bf16
};

}  // namespace onestep

#endif  // ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_TIER_H_
