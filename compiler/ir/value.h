// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_IR_VALUE_H_
#define ONESTEP_COMPILER_IR_VALUE_H_

#include "runtime/base/types.h"

namespace onestep {

struct Node;

// One result of a node. The default is "no value".
struct Value {
  Node* node = nullptr;
  int index = 0;

  explicit operator bool() const { return node != nullptr; }
  const TensorType& type() const;
  friend bool operator==(const Value&, const Value&) = default;
};

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_VALUE_H_
