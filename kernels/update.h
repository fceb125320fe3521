// SPDX-License-Identifier: Apache-2.0
// The optimizers' update rules, by which kernels and compiler name them. Plain
// C++17. Rule Foo is the struct Foo of kernels/update_rules.inc, the function
// Foo of kernels/reference.cc and the op foo_update (compiler/ir/ops.def).
#ifndef ONESTEP_KERNELS_UPDATE_H_
#define ONESTEP_KERNELS_UPDATE_H_

#include <cstdint>

#include "kernels/update_rules.inc"

namespace onestep {

#define RULE(Rule) k##Rule,
enum class UpdateRule : uint8_t { ONESTEP_UPDATE_RULES(RULE) };
#undef RULE

#define RULE(Rule) UpdateRule::k##Rule,
inline constexpr UpdateRule kAllUpdateRules[] = {ONESTEP_UPDATE_RULES(RULE)};
#undef RULE

// What any rule has at most: tensors of state, each of the size of the weights,
// and hyper-parameters besides the learning rate.
inline constexpr int kMaxUpdateStates = 2;
inline constexpr int kMaxUpdateHypers = 4;

}  // namespace onestep

#endif  // ONESTEP_KERNELS_UPDATE_H_
