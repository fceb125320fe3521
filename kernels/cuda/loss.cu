// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/loss.cuh"

namespace onestep::cuda {
namespace {

Launch OverGroups(Launch launch, const SoftmaxArgs& args) {
  return Sized(launch, CeilDiv(args.rows, kRowThreads >> args.log2_lanes),
               kRowThreads);
}

Parts LossParts(int64_t rows, int64_t cols) {
  return ShareOut(rows, cols, 1, kMaxPartRows);
}

// `args` but for the parts and the lanes.
Launch LossLaunch(LossArgs args, void* workspace) {
  const Parts parts = LossParts(args.rows, args.cols);
  args.sums = MakePartSums(parts, 1, args.cols + 2, workspace);
  args.log2_lanes = Log2Lanes(args.cols);
  args.log2_sum_lanes =
      Log2Lanes(args.dlogits.first != nullptr ? args.cols + 2 : 2);
  const int64_t shared_bytes =
      kSumFloats * sizeof(float) + parts.rows * sizeof(RowResult);
  return Sized(ONESTEP_LAUNCH(LossGrad, args), parts.count, kSumThreads,
               shared_bytes);
}

}  // namespace

int64_t LossWorkspaceBytes(int64_t rows, int64_t cols) {
  return PartSumsBytes(LossParts(rows, cols), 1, cols + 2);
}

Launch Softmax(In x, Out y, int64_t rows, int64_t cols) {
  const SoftmaxArgs args = {x, nullptr, y, rows, cols, Log2Lanes(cols)};
  return OverGroups(ONESTEP_LAUNCH(Softmax, args), args);
}

Launch SoftmaxGrad(In y, In dy, Out dx, int64_t rows, int64_t cols) {
  const SoftmaxArgs args = {y, dy, dx, rows, cols, Log2Lanes(cols)};
  return OverGroups(ONESTEP_LAUNCH(SoftmaxGrad, args), args);
}

Launch NllLoss(In logits, const int32_t* labels, Out loss, int64_t rows,
               int64_t cols, int64_t batch, void* workspace) {
  LossArgs args = {};
  args.logits = logits;
  args.labels = labels;
  args.loss = loss;
  args.rows = rows;
  args.cols = cols;
  args.mean = batch;
  return LossLaunch(args, workspace);
}

Launch CountCorrect(In logits, const int32_t* labels, Out correct, int64_t rows,
                    int64_t cols, void* workspace) {
  LossArgs args = {};
  args.logits = logits;
  args.labels = labels;
  args.correct = correct;
  args.rows = rows;
  args.cols = cols;
  args.mean = rows;
  return LossLaunch(args, workspace);
}

Launch LossGrad(const LossGradParams& params) {
  LossArgs args = {};
  args.mse = params.mse;
  args.logits = params.logits;
  args.labels = params.labels;
  args.indices = params.indices;
  args.lr = params.lr;
  args.bias = params.bias;
  args.loss = params.loss;
  args.dlogits = params.dlogits;
  args.correct = params.correct;
  args.db = params.db;
  args.rows = params.rows;
  args.cols = params.cols;
  args.mean = params.mse ? params.batch * params.cols : params.batch;
  return LossLaunch(args, params.workspace);
}

Launch MinusOneHot(In p, const int32_t* labels, Out y, int64_t rows,
                   int64_t cols) {
  const bool wide = ByFours(cols, {p, y});
  const MinusOneHotArgs args = {p, labels, y,
                                LayOut(rows, wide ? cols / 4 : cols)};
  return OverRows(wide ? ONESTEP_LAUNCH(MinusOneHot<4>, args)
                       : ONESTEP_LAUNCH(MinusOneHot<1>, args),
                  args.layout);
}

Launch MseLoss(In y, In t, Out loss, int64_t n, int64_t elements,
               void* workspace) {
  const Parts parts = ShareOut(n, 1, 1);
  const MseArgs args = {y, t,        loss,
                        n, elements, MakePartSums(parts, 1, 1, workspace)};
  return Sized(ONESTEP_LAUNCH(MseLoss, args), parts.count, kSumThreads,
               kSumFloats * sizeof(float));
}

Launch MseGrad(In y, In t, Out dy, int64_t n, int64_t elements) {
  const MseArgs args = {y, t, dy, n, elements, {}};
  if (ByFours(n, {y, t, dy})) {
    return OverElements(ONESTEP_LAUNCH(MseGrad<4>, args), n, 4);
  }
  return OverElements(ONESTEP_LAUNCH(MseGrad<1>, args), n, 1);
}

}  // namespace onestep::cuda
