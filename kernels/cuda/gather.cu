// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gather.cuh"

namespace onestep::cuda {
namespace {

template <typename Unit>
Launch CopyRowsOf(CopyRowsArgs args, int64_t rows, int64_t row_bytes) {
  args.layout = LayOut(rows, row_bytes / static_cast<int64_t>(sizeof(Unit)));
  return OverRows(ONESTEP_LAUNCH(CopyRows<Unit>, args), args.layout);
}

// By the largest unit that divides the addresses and the sizes.
Launch CopyAnyRows(const CopyRowsArgs& args, int64_t rows, int64_t row_bytes) {
  using Sixteen = dev::Vec<uint32_t, 4>;
  const auto divides = [&](int64_t unit) {
    return (args.stride_bytes | row_bytes) % unit == 0 &&
           Aligned(unit, {args.from, args.to});
  };
  if (divides(16)) return CopyRowsOf<Sixteen>(args, rows, row_bytes);
  if (divides(4)) return CopyRowsOf<uint32_t>(args, rows, row_bytes);
  return CopyRowsOf<uint8_t>(args, rows, row_bytes);
}

template <typename T>
Launch CastAny(const T* x, float* y, int64_t n) {
  const CastArgs<T> args = {x, y, n};
  if (ByFours(n, {y}) && Aligned(4 * sizeof(T), {x})) {
    return OverElements(ONESTEP_LAUNCH((Cast<T, 4>), args), n, 4);
  }
  return OverElements(ONESTEP_LAUNCH((Cast<T, 1>), args), n, 1);
}

}  // namespace

Launch GatherRows(const void* table, const int32_t* indices, void* y,
                  int64_t rows, int64_t row_bytes) {
  const auto* from = static_cast<const unsigned char*>(table);
  return CopyAnyRows({from, indices, y, row_bytes, {}}, rows, row_bytes);
}

Launch SliceRows(const void* x, void* y, int64_t rows, int64_t row_bytes,
                 int64_t x_row_bytes) {
  const auto* from = static_cast<const unsigned char*>(x);
  return CopyAnyRows({from, nullptr, y, x_row_bytes, {}}, rows, row_bytes);
}

Launch GatherConvert(const uint8_t* table, const int32_t* indices, float alpha,
                     float* y, int64_t rows, int64_t cols) {
  const bool wide = ByFours(cols, {y}) && Aligned(4, {table});
  const GatherConvertArgs args = {table, indices, alpha, y,
                                  LayOut(rows, wide ? cols / 4 : cols)};
  return OverRows(wide ? ONESTEP_LAUNCH(GatherConvert<4>, args)
                       : ONESTEP_LAUNCH(GatherConvert<1>, args),
                  args.layout);
}

Launch CastU8(const uint8_t* x, float* y, int64_t n) {
  return CastAny(x, y, n);
}

Launch CastI32(const int32_t* x, float* y, int64_t n) {
  return CastAny(x, y, n);
}

Launch OneHot(const int32_t* labels, float* y, int64_t rows, int64_t classes) {
  const bool wide = ByFours(classes, {y});
  const OneHotArgs args = {labels, y,
                           LayOut(rows, wide ? classes / 4 : classes)};
  return OverRows(
      wide ? ONESTEP_LAUNCH(OneHot<4>, args) : ONESTEP_LAUNCH(OneHot<1>, args),
      args.layout);
}

Launch Fill(float* y, float value, int64_t n) {
  const FillArgs args = {y, value, n};
  if (ByFours(n, {y})) {
    return OverElements(ONESTEP_LAUNCH(Fill<4>, args), n, 4);
  }
  return OverElements(ONESTEP_LAUNCH(Fill<1>, args), n, 1);
}

}  // namespace onestep::cuda
