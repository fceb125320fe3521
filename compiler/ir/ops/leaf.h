// SPDX-License-Identifier: Apache-2.0
// What a graph is given: inputs, params and constants.
#ifndef ONESTEP_COMPILER_IR_OPS_LEAF_H_
#define ONESTEP_COMPILER_IR_OPS_LEAF_H_

#include <string>

#include "compiler/ir/fields.h"

namespace onestep {

// Input and Param: the name is printed as the value (%w1), not as a field.
struct NameAttrs {
  std::string name;
  template <typename V>
  void Visit(V&&) {}
  friend bool operator==(const NameAttrs&, const NameAttrs&) = default;
};

struct ConstantAttrs {
  float value = 0;
  ONESTEP_FIELDS(ConstantAttrs, value);
};

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OPS_LEAF_H_
