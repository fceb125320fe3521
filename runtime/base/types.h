// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_BASE_TYPES_H_
#define ONESTEP_RUNTIME_BASE_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace onestep {

enum class DType : uint8_t { kF32, kU8, kI32 };

// "f32", "u8", "i32".
const char* DTypeName(DType dtype);
int64_t DTypeBytes(DType dtype);

// The type of a dense row-major tensor. A scalar has no dims.
struct TensorType {
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;
  // In a step that trains several models: K >= 1 means one tensor of these dims
  // for each of K models; 0 means one tensor that all models share.
  int64_t models = 0;

  int rank() const { return static_cast<int>(dims.size()); }
  int64_t num_elements() const;  // of one model
  int64_t bytes() const {        // of all models
    return num_elements() * DTypeBytes(dtype) * (models == 0 ? 1 : models);
  }
  // "f32[32,128]", "f32[]"; with 16 models "16xf32[32,128]".
  std::string ToString() const;

  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// The f32 type with these dims.
inline TensorType F32(std::vector<int64_t> dims) {
  return TensorType{DType::kF32, std::move(dims)};
}

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_BASE_TYPES_H_
