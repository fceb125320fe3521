// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gather.cuh"

namespace onestep::cuda {
namespace {

// By the largest unit that divides the addresses and the sizes.
Launch CopyAnyRows(CopyRowsArgs args, int64_t rows, int64_t row_bytes) {
  const auto divides = [&](int64_t unit) {
    return (args.stride_bytes | row_bytes) % unit == 0 &&
           Aligned(unit, {args.from, args.to});
  };
  const int64_t unit = divides(16) ? 16 : divides(4) ? 4 : 1;
  args.layout = LayOut(rows, row_bytes / unit);
  return OverRows(unit == 16  ? ONESTEP_LAUNCH(CopyRows<16>, args)
                  : unit == 4 ? ONESTEP_LAUNCH(CopyRows<4>, args)
                              : ONESTEP_LAUNCH(CopyRows<1>, args),
                  args.layout);
}

}  // namespace

Launch GatherRows(const void* table, const int32_t* indices, void* y,
                  int64_t rows, int64_t row_bytes) {
  const auto* from = static_cast<const unsigned char*>(table);
  return CopyAnyRows({from, indices, y, row_bytes, {}}, rows, row_bytes);
}

Launch SliceRows(PerModel<const void> x, PerModel<void> y, int64_t rows,
                 int64_t row_bytes, int64_t x_row_bytes) {
  const auto* from = static_cast<const unsigned char*>(x.first);
  return CopyAnyRows({{from, x.stride_bytes}, nullptr, y, x_row_bytes, {}},
                     rows, row_bytes);
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

Launch CastU8(PerModel<const uint8_t> x, Out y, int64_t n) {
  const CastArgs<uint8_t> args = {x, y, n};
  if (ByFours(n, {y}) && Aligned(4, {x})) {
    return OverElements(ONESTEP_LAUNCH(CastU8<4>, args), n, 4);
  }
  return OverElements(ONESTEP_LAUNCH(CastU8<1>, args), n, 1);
}

Launch CastI32(PerModel<const int32_t> x, Out y, int64_t n) {
  const CastArgs<int32_t> args = {x, y, n};
  if (ByFours(n, {x, y})) {
    return OverElements(ONESTEP_LAUNCH(CastI32<4>, args), n, 4);
  }
  return OverElements(ONESTEP_LAUNCH(CastI32<1>, args), n, 1);
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
