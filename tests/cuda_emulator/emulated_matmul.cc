// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/emulated_matmul.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>
#include <vector>

#include "runtime/base/buffer.h"

namespace onestep {
namespace {

float Rounded(float value, MathMode math) {
  if (math == MathMode::kFp32) return value;
  const int dropped = math == MathMode::kTf32 ? 13 : 16;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;  // inf, nan
  const uint32_t half = 1u << (dropped - 1);
  bits += half - 1 + ((bits >> dropped) & 1);
  bits &= ~((1u << dropped) - 1);
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

// op(x), [rows,cols], rounded.
std::vector<float> Operand(const float* x, int64_t rows, int64_t cols,
                           bool transposed, MathMode math) {
  std::vector<float> out(rows * cols);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      out[r * cols + c] =
          Rounded(transposed ? x[c * rows + r] : x[r * cols + c], math);
    }
  }
  return out;
}

bool GetBit(const void* mask, int64_t bit) {
  return static_cast<const uint8_t*>(mask)[bit / 8] >> (bit % 8) & 1;
}

void SetBit(void* mask, int64_t bit, bool value) {
  uint8_t& byte = static_cast<uint8_t*>(mask)[bit / 8];
  const uint8_t one = static_cast<uint8_t>(1 << (bit % 8));
  byte = static_cast<uint8_t>(value ? byte | one : byte & ~one);
}

// What y[i,j] becomes, from the sum over k.
double Epilogue(const CudaMatMul& matmul, const CudaMatMulOperands& operands,
                int64_t i, int64_t j, double sum) {
  const int64_t bit = i * MaskColumns(matmul.n) + j;
  if (matmul.accumulate) sum += operands.y[i * matmul.n + j];
  if (matmul.bias) sum += operands.bias[j];
  if (matmul.mask_out) SetBit(operands.mask, bit, sum > 0);
  if (matmul.relu) sum = sum > 0 ? sum : 0;
  if (matmul.mask_in && !GetBit(operands.mask, bit)) sum = 0;
  return sum;
}

// Of one model.
void MultiplyOne(const CudaMatMul& matmul, const CudaMatMulOperands& operands) {
  const auto [m, n, k] = std::tuple(matmul.m, matmul.n, matmul.k);
  const std::vector<float> a =
      Operand(operands.a, m, k, matmul.trans_a, matmul.math);
  const std::vector<float> b =
      Operand(operands.b, k, n, matmul.trans_b, matmul.math);
  std::vector<double> column_sums(n);
  std::vector<double> row(n);
  for (int64_t i = 0; i < m; ++i) {
    std::fill(row.begin(), row.end(), 0);
    for (int64_t l = 0; l < k; ++l) {
      const double factor = a[i * k + l];
      for (int64_t j = 0; j < n; ++j) row[j] += factor * b[l * n + j];
    }
    for (int64_t j = 0; j < n; ++j) {
      const double y = Epilogue(matmul, operands, i, j, row[j]);
      operands.y[i * n + j] = static_cast<float>(y);
      if (matmul.mask_in) column_sums[j] += y;
    }
  }
  if (!matmul.column_sums) return;
  for (int64_t l = 0; !matmul.mask_in && l < k; ++l) {
    for (int64_t j = 0; j < n; ++j) column_sums[j] += operands.b[l * n + j];
  }
  std::copy(column_sums.begin(), column_sums.end(), operands.column_sums);
}

}  // namespace

std::string EpilogueRefusal(const CudaMatMul& matmul) {
  if (matmul.mask_out && !matmul.relu) return "mask_out wants relu";
  if (matmul.mask_in && (matmul.relu || matmul.bias)) {
    return "mask_in goes with neither relu nor bias";
  }
  if (matmul.column_sums && (matmul.relu || matmul.bias)) {
    return "column_sums goes with neither relu nor bias";
  }
  if (matmul.column_sums && !matmul.mask_in &&
      !(matmul.trans_a && !matmul.trans_b)) {
    return "column_sums wants mask_in, or trans_a without trans_b";
  }
  if (matmul.models > 0 && (matmul.bias || matmul.column_sums) &&
      matmul.n % 4 != 0) {
    return "vectors of the models are not aligned to 16 bytes";
  }
  return "";
}

std::array<MatMulOperand, 6> OperandsOf(const CudaMatMul& matmul,
                                        const CudaMatMulOperands& operands) {
  constexpr int64_t kFloat = sizeof(float), kVectorAlignment = 16;
  const auto [m, n, k] = std::tuple(matmul.m, matmul.n, matmul.k);
  const auto rows = [](int64_t columns) {
    return std::gcd(columns * kFloat, kBufferAlignment);
  };
  const int64_t all = matmul.count(), of_a = matmul.shared_a ? 1 : all;
  const int64_t vector_bytes = all * n * kFloat;
  const int64_t mask_bytes =
      matmul.mask_out || matmul.mask_in ? all * m * MaskColumns(n) / 8 : 0;
  return {
      {{"y", operands.y, all * m * n * kFloat, rows(n)},
       {"column_sums", operands.column_sums,
        matmul.column_sums ? vector_bytes : 0, kVectorAlignment},
       {"mask", operands.mask, mask_bytes, kVectorAlignment},
       {"a", operands.a, of_a * m * k * kFloat, rows(matmul.trans_a ? m : k)},
       {"b", operands.b, all * k * n * kFloat, rows(matmul.trans_b ? k : n)},
       {"bias", operands.bias, matmul.bias ? vector_bytes : 0,
        kVectorAlignment}}};
}

void MultiplyMatrices(const CudaMatMul& matmul,
                      const CudaMatMulOperands& operands) {
  const auto [m, n, k] = std::tuple(matmul.m, matmul.n, matmul.k);
  CudaMatMulOperands of_model = operands;
  for (int64_t model = 0; model < matmul.count(); ++model) {
    MultiplyOne(matmul, of_model);
    if (!matmul.shared_a) of_model.a += m * k;
    of_model.b += k * n;
    of_model.y += m * n;
    if (matmul.bias) of_model.bias += n;
    if (matmul.column_sums) of_model.column_sums += n;
    if (of_model.mask != nullptr) {
      of_model.mask =
          static_cast<char*>(of_model.mask) + m * MaskColumns(n) / 8;
    }
  }
}

}  // namespace onestep
