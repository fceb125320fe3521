// SPDX-License-Identifier: Apache-2.0
// For the tests of shape rules: what an op makes of types, or refuses.
#ifndef ONESTEP_TESTS_COMPILER_INFER_TYPES_H_
#define ONESTEP_TESTS_COMPILER_INFER_TYPES_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "tests/status_matchers.h"

namespace onestep {

using Types = std::vector<TensorType>;

inline TensorType I32(std::vector<int64_t> dims) { return {DType::kI32, dims}; }
inline TensorType U8(std::vector<int64_t> dims) { return {DType::kU8, dims}; }

// The types that a node of this kind gets in a graph.
inline absl::StatusOr<Types> Infer(OpKind kind, const Types& types,
                                   const Attrs& attrs) {
  Graph graph;
  std::vector<Value> operands;
  for (const TensorType& type : types) {
    operands.push_back(
        graph.AddInput("x" + std::to_string(operands.size()), type));
  }
  absl::StatusOr<Node*> node = graph.AddNode(kind, operands, attrs);
  if (!node.ok()) return node.status();
  return (*node)->types;
}

inline absl::StatusOr<Types> Infer(OpKind kind, const Types& types) {
  return Infer(kind, types, GetOpDef(kind).default_attrs);
}

// Of the op with this name in the text form.
inline absl::StatusOr<Types> Infer(const std::string& name,
                                   const Types& types) {
  const std::optional<NamedOp> op = FindOp(name);
  if (!op) return absl::NotFoundError(name);
  return Infer(op->kind, types, op->attrs);
}

inline void ExpectTypes(const absl::StatusOr<Types>& got, const Types& want) {
  ASSERT_OK(got);
  EXPECT_EQ(*got, want);
}

inline void ExpectRefused(const absl::StatusOr<Types>& got,
                          const std::string& message) {
  EXPECT_THAT(got, StatusIs(absl::StatusCode::kInvalidArgument,
                            testing::HasSubstr(message)));
}

}  // namespace onestep

#endif  // ONESTEP_TESTS_COMPILER_INFER_TYPES_H_
