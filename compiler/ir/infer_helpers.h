// SPDX-License-Identifier: Apache-2.0
// What the shape rules share.
#ifndef ONESTEP_COMPILER_IR_INFER_HELPERS_H_
#define ONESTEP_COMPILER_IR_INFER_HELPERS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/op.h"

namespace onestep {

using Types = std::vector<TensorType>;

inline TensorType I32(std::vector<int64_t> dims) {
  return TensorType{DType::kI32, std::move(dims)};
}

inline bool IsVector(const TensorType& type, DType dtype) {
  return type.dtype == dtype && type.rank() == 1;
}

inline bool IsMatrix(const TensorType& type, DType dtype = DType::kF32) {
  return type.dtype == dtype && type.rank() == 2;
}

inline std::string Join(const Types& types) {
  return absl::StrJoin(types, ", ", [](std::string* out, const TensorType& t) {
    out->append(t.ToString());
  });
}

inline absl::Status Wrong(OpKind kind, const std::string& want,
                          const std::string& got) {
  return absl::InvalidArgumentError(
      absl::StrCat(GetOpDef(kind).name, ": want ", want, ", got ", got));
}

inline absl::Status Wrong(OpKind kind, const std::string& want,
                          const Types& got) {
  return Wrong(kind, want, Join(got));
}

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_INFER_HELPERS_H_
