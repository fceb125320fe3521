// SPDX-License-Identifier: Apache-2.0
// The activation functions and what is known of each. Plain C++17, for the
// compiler's core, the kernels and nvcc alike; the rows are in activations.def.
#ifndef ONESTEP_KERNELS_ACTIVATION_H_
#define ONESTEP_KERNELS_ACTIVATION_H_

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace onestep {

enum class Activation : uint8_t {
  kNone,  // y = x
#define ACTIVATION(Kind, ...) k##Kind,
#include "kernels/activations.def"
#undef ACTIVATION
};

// Without kNone.
inline constexpr Activation kAllActivations[] = {
#define ACTIVATION(Kind, ...) Activation::k##Kind,
#include "kernels/activations.def"
#undef ACTIVATION
};

// What the gradient reads besides dy.
enum class ActivationSaved : uint8_t { kResult, kOperand };

struct ActivationFacts {
  const char* name;
  ActivationSaved saved;
  double flops, grad_flops;  // for each element
};
// By the value of the enumerator.
inline constexpr ActivationFacts kActivationFacts[] = {
    {"none", ActivationSaved::kResult, 0, 0},
#define ACTIVATION(Kind, text, saved, flops, grad_flops, ...) \
  {text, ActivationSaved::saved, flops, grad_flops},
#include "kernels/activations.def"
#undef ACTIVATION
};

constexpr const ActivationFacts& FactsOf(Activation activation) {
  return kActivationFacts[static_cast<size_t>(activation)];
}

// "relu"; "?" of a value that is no enumerator.
constexpr const char* ToString(Activation activation) {
  return static_cast<size_t>(activation) <= std::size(kAllActivations)
             ? FactsOf(activation).name
             : "?";
}

// The gradient reads the activation's operand, not its result.
constexpr bool ActivationGradReadsOperand(Activation activation) {
  return FactsOf(activation).saved == ActivationSaved::kOperand;
}

constexpr double ActivationFlops(Activation activation) {
  return FactsOf(activation).flops;
}
constexpr double ActivationGradFlops(Activation activation) {
  return FactsOf(activation).grad_flops;
}

}  // namespace onestep

#endif  // ONESTEP_KERNELS_ACTIVATION_H_
