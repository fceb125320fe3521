// SPDX-License-Identifier: Apache-2.0
// The activations in fp32, a struct for each row of kernels/activations.def.
#ifndef ONESTEP_KERNELS_CUDA_ACTIVATION_CUH_
#define ONESTEP_KERNELS_CUDA_ACTIVATION_CUH_

#include "kernels/activation.h"
#include "kernels/cuda/device.h"

namespace onestep::cuda {
namespace activations {

struct Relu {
  static ONESTEP_DEVICE float Forward(float x) {
    return x < 0 ? 0 : x;  // a NaN stays one
  }
  static ONESTEP_DEVICE float Backward(float y, float dy) {
    return y > 0 ? dy : 0;
  }
};

struct Tanh {
  static ONESTEP_DEVICE float Forward(float x) { return dev::Tanh(x); }
  static ONESTEP_DEVICE float Backward(float y, float dy) {
    return dy * (1 - y * y);
  }
};

struct Sigmoid {
  static ONESTEP_DEVICE float Forward(float x) {
    return 1 / (1 + dev::Exp(-x));
  }
  static ONESTEP_DEVICE float Backward(float y, float dy) {
    return dy * (y * (1 - y));
  }
};

struct Gelu {
  static ONESTEP_DEVICE float Cdf(float x) {
    return 0.5f + 0.5f * dev::Erf(x * 0.70710678f);
  }
  static ONESTEP_DEVICE float Forward(float x) { return x * Cdf(x); }
  static ONESTEP_DEVICE float Backward(float x, float dy) {
    const float pdf = 0.39894228f * dev::Exp(-0.5f * x * x);
    return dy * dev::Fma(x, pdf, Cdf(x));
  }
};

}  // namespace activations

// y = f(x). Without kOperands, the caller has no activation whose gradient
// reads the operand, and the code of those is left out.
template <bool kOperands = true>
ONESTEP_DEVICE float Forward(Activation activation, float x) {
  switch (activation) {
    case Activation::kNone:
      break;
#define ACTIVATION(Kind, text, saved, ...)                              \
  case Activation::k##Kind:                                             \
    if constexpr (kOperands ||                                          \
                  ActivationSaved::saved == ActivationSaved::kResult) { \
      return activations::Kind::Forward(x);                             \
    }                                                                   \
    break;
#include "kernels/activations.def"
#undef ACTIVATION
  }
  return x;
}

// dy f'; `saved` is y or x, as the gradient reads. kOperands: as above.
template <bool kOperands = true>
ONESTEP_DEVICE float Backward(Activation activation, float saved, float dy) {
  switch (activation) {
    case Activation::kNone:
      break;
#define ACTIVATION(Kind, text, saves, ...)                              \
  case Activation::k##Kind:                                             \
    if constexpr (kOperands ||                                          \
                  ActivationSaved::saves == ActivationSaved::kResult) { \
      return activations::Kind::Backward(saved, dy);                    \
    }                                                                   \
    break;
#include "kernels/activations.def"
#undef ACTIVATION
  }
  return dy;
}

}  // namespace onestep::cuda

#endif  // ONESTEP_KERNELS_CUDA_ACTIVATION_CUH_
