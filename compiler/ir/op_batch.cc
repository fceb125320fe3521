// SPDX-License-Identifier: Apache-2.0
// Batching rules: what the operands of a node are when it computes for many
// models at once. The rows of a batch are fetched once for all of them: tables,
// indices, labels and sparse rows are shared.
#include <initializer_list>
#include <vector>

#include "compiler/ir/op_rules.h"

namespace onestep {
namespace {

using Axes = std::vector<ModelAxis>;

constexpr ModelAxis kPerModel = ModelAxis::kPerModel;
constexpr ModelAxis kShared = ModelAxis::kShared;
constexpr ModelAxis kEither = ModelAxis::kEither;

Axes AllPerModel(int operands) { return Axes(operands, kPerModel); }
Axes AllShared(int operands) { return Axes(operands, kShared); }

// All per model but operand `i`.
Axes AllBut(int operands, int i, ModelAxis axis) {
  Axes axes = AllPerModel(operands);
  axes[i] = axis;
  return axes;
}

// All shared but these operands.
Axes OnlyPerModel(int operands, std::initializer_list<int> per_model) {
  Axes axes = AllShared(operands);
  for (int i : per_model) axes[i] = kPerModel;
  return axes;
}

}  // namespace

#define ALL_PER_MODEL(kind) \
  Axes Batch##kind(int operands, const Attrs&) { return AllPerModel(operands); }
#define ALL_SHARED(kind) \
  Axes Batch##kind(int operands, const Attrs&) { return AllShared(operands); }

ALL_SHARED(Input)
ALL_SHARED(Param)
ALL_SHARED(Constant)

// A table is data, or one model's: params whose rows are gathered, embeddings,
// are not batched over models.
ALL_SHARED(GatherRows)
ALL_SHARED(GatherConvert)
ALL_SHARED(GatherSparse)
ALL_SHARED(OneHot)
ALL_PER_MODEL(Cast)

ALL_PER_MODEL(Scale)
ALL_PER_MODEL(MulScalar)
ALL_PER_MODEL(Add)
ALL_PER_MODEL(Mul)
ALL_PER_MODEL(BlockMatMul)
ALL_PER_MODEL(AddBias)
ALL_PER_MODEL(ReduceRows)
ALL_PER_MODEL(BroadcastRows)

ALL_PER_MODEL(Relu)
ALL_PER_MODEL(Tanh)
ALL_PER_MODEL(Sigmoid)
ALL_PER_MODEL(Gelu)
ALL_PER_MODEL(ReluGrad)
ALL_PER_MODEL(TanhGrad)
ALL_PER_MODEL(SigmoidGrad)
ALL_PER_MODEL(GeluGrad)
ALL_PER_MODEL(ActivationGrad)

ALL_PER_MODEL(Softmax)
ALL_PER_MODEL(SoftmaxGrad)

ALL_PER_MODEL(SgdUpdate)
ALL_PER_MODEL(MomentumUpdate)

ALL_SHARED(BroadcastModels)
ALL_PER_MODEL(Slice)
ALL_SHARED(Exchange)  // models need no exchange

#undef ALL_PER_MODEL
#undef ALL_SHARED

// The first layer multiplies one batch by the weights of all models.
Axes BatchMatMul(int operands, const Attrs&) {
  return AllBut(operands, 0, kEither);
}

Axes BatchSparseMatMul(int operands, const Attrs&) {
  return AllBut(operands, 0, kShared);
}

Axes BatchSparseOuter(int operands, const Attrs&) {
  return AllBut(operands, 0, kShared);
}

// The indices.
Axes BatchScatterAdd(int operands, const Attrs&) {
  return AllBut(operands, 1, kShared);
}

// All but z says which pairs there are.
Axes BatchSigmoidBce(int operands, const Attrs&) {
  return OnlyPerModel(operands, {0});
}

Axes BatchSigmoidBceGrad(int operands, const Attrs&) {
  return OnlyPerModel(operands, {0});
}

// The tables and the learning rate.
Axes BatchSgnsWindow(int operands, const Attrs&) {
  return OnlyPerModel(operands, {0, 1, operands - 1});
}

Axes BatchHsWindow(int operands, const Attrs&) {
  return OnlyPerModel(operands, {0, 1, operands - 1});
}

Axes BatchCbowWindow(int operands, const Attrs&) {
  return OnlyPerModel(operands, {0, 1, operands - 1});
}

// Labels.
Axes BatchNllLoss(int operands, const Attrs&) {
  return AllBut(operands, 1, kShared);
}

Axes BatchMinusOneHot(int operands, const Attrs&) {
  return AllBut(operands, 1, kShared);
}

Axes BatchCountCorrect(int operands, const Attrs&) {
  return AllBut(operands, 1, kShared);
}

// Labels, and the indices of their rows.
Axes BatchLossGrad(int operands, const Attrs& attrs) {
  Axes axes = AllBut(operands, 1, kShared);
  if (std::get<LossGradAttrs>(attrs).gather) axes[2] = kShared;
  return axes;
}

// The target.
Axes BatchMseLoss(int operands, const Attrs&) {
  return AllBut(operands, 1, kEither);
}

Axes BatchMseGrad(int operands, const Attrs&) {
  return AllBut(operands, 1, kEither);
}

// The step.
Axes BatchAdamUpdate(int operands, const Attrs&) {
  return AllBut(operands, 5, kShared);
}

}  // namespace onestep
