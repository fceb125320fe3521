// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise.cuh"

namespace onestep::cuda {
namespace {

Parts ColumnParts(int64_t rows, int64_t cols) {
  const int64_t width = cols < kWarpSize ? cols : kWarpSize;
  return ShareOut(rows, width, CeilDiv(cols, kWarpSize));
}

Launch OverTiles(Launch launch, const ColumnSumArgs& args) {
  launch = Sized(launch, CeilDiv(args.sums.cols, kWarpSize), kSumThreads,
                 kSumFloats * sizeof(float));
  launch.grid.y = static_cast<uint32_t>(args.sums.parts.count);
  return launch;
}

PartSums ColumnSums(int64_t rows, int64_t cols, void* workspace) {
  return MakePartSums(ColumnParts(rows, cols), CeilDiv(cols, kWarpSize), cols,
                      workspace);
}

}  // namespace

int64_t ColumnSumsWorkspaceBytes(int64_t rows, int64_t cols) {
  return PartSumsBytes(ColumnParts(rows, cols), CeilDiv(cols, kWarpSize), cols);
}

Launch Scale(In x, float alpha, Out y, int64_t n) {
  const ScaleArgs args = {x, alpha, nullptr, y, n};
  if (ByFours(n, {x, y})) {
    return OverElements(ONESTEP_LAUNCH(Scale<4>, args), n, 4);
  }
  return OverElements(ONESTEP_LAUNCH(Scale<1>, args), n, 1);
}

Launch MulScalar(In x, In s, float alpha, Out y, int64_t n) {
  const ScaleArgs args = {x, alpha, s, y, n};
  if (ByFours(n, {x, y})) {
    return OverElements(ONESTEP_LAUNCH(MulScalar<4>, args), n, 4);
  }
  return OverElements(ONESTEP_LAUNCH(MulScalar<1>, args), n, 1);
}

Launch Add(In a, In b, Out y, int64_t n) {
  const BinaryArgs args = {a, b, y, n};
  if (ByFours(n, {a, b, y})) {
    return OverElements(ONESTEP_LAUNCH(Add<4>, args), n, 4);
  }
  return OverElements(ONESTEP_LAUNCH(Add<1>, args), n, 1);
}

Launch Mul(In a, In b, Out y, int64_t n) {
  const BinaryArgs args = {a, b, y, n};
  if (ByFours(n, {a, b, y})) {
    return OverElements(ONESTEP_LAUNCH(Mul<4>, args), n, 4);
  }
  return OverElements(ONESTEP_LAUNCH(Mul<1>, args), n, 1);
}

Launch AddBias(In x, In b, Out y, int64_t rows, int64_t cols) {
  const bool wide = ByFours(cols, {x, b, y});
  const RowsArgs args = {x, b, y, LayOut(rows, wide ? cols / 4 : cols)};
  return OverRows(wide ? ONESTEP_LAUNCH(AddBias<4>, args)
                       : ONESTEP_LAUNCH(AddBias<1>, args),
                  args.layout);
}

Launch BroadcastRows(In x, Out y, int64_t rows, int64_t cols) {
  const bool wide = ByFours(cols, {x, y});
  const RowsArgs args = {x, nullptr, y, LayOut(rows, wide ? cols / 4 : cols)};
  return OverRows(wide ? ONESTEP_LAUNCH(BroadcastRows<4>, args)
                       : ONESTEP_LAUNCH(BroadcastRows<1>, args),
                  args.layout);
}

Launch Activate(Activation act, In x, Out y, int64_t n) {
  const ActivateArgs args = {act, x, nullptr, y, n};
  if (ByFours(n, {x, y})) {
    return OverElements(ONESTEP_LAUNCH(Activate<4>, args), n, 4);
  }
  return OverElements(ONESTEP_LAUNCH(Activate<1>, args), n, 1);
}

Launch ActivateGrad(Activation act, In y, In dy, Out dx, int64_t n) {
  const ActivateArgs args = {act, y, dy, dx, n};
  if (ByFours(n, {y, dy, dx})) {
    return OverElements(ONESTEP_LAUNCH(ActivateGrad<4>, args), n, 4);
  }
  return OverElements(ONESTEP_LAUNCH(ActivateGrad<1>, args), n, 1);
}

Launch ReduceRows(In x, Out y, int64_t rows, int64_t cols, void* workspace) {
  const ColumnSumArgs args = {Activation::kNone,
                              nullptr,
                              x,
                              nullptr,
                              nullptr,
                              y,
                              rows,
                              Log2Lanes(cols),
                              ColumnSums(rows, cols, workspace)};
  return OverTiles(ONESTEP_LAUNCH(ReduceRows, args), args);
}

Launch ActivationGrad(Activation act, In y, In dy, In b, Out dx, Out db,
                      int64_t rows, int64_t cols, void* workspace) {
  if (db.first == nullptr) return ActivateGrad(act, y, dy, dx, rows * cols);
  const ColumnSumArgs args = {act,
                              y,
                              dy,
                              dx,
                              b,
                              db,
                              rows,
                              Log2Lanes(cols),
                              ColumnSums(rows, cols, workspace)};
  return OverTiles(ONESTEP_LAUNCH(ActivationGrad, args), args);
}

}  // namespace onestep::cuda
