// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/types.h"

namespace onestep {

const char* DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kU8:
      return "u8";
    case DType::kI32:
      return "i32";
  }
  return "?";
}

int64_t DTypeBytes(DType dtype) { return dtype == DType::kU8 ? 1 : 4; }

int64_t TensorType::num_elements() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

std::string TensorType::ToString() const {
  std::string text = models > 0 ? std::to_string(models) + "x" : "";
  text += DTypeName(dtype);
  text += '[';
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(dims[i]);
  }
  text += ']';
  return text;
}

}  // namespace onestep
