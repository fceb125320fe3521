// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/graph.h"
#include "tests/compiler/infer_types.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using ::testing::HasSubstr;

MatMulAttrs Transposed(bool trans_a, bool trans_b) {
  MatMulAttrs attrs;
  attrs.trans_a = trans_a;
  attrs.trans_b = trans_b;
  return attrs;
}

// ---- leaves ----------------------------------------------------------------

TEST(OpInferTest, LeavesAndConstantsHaveNoRule) {
  for (const OpKind kind :
       {OpKind::kInput, OpKind::kParam, OpKind::kConstant}) {
    EXPECT_THAT(
        GetOpDef(kind).rules.infer({}, {}),
        StatusIs(absl::StatusCode::kInternal, HasSubstr("type is given")));
  }
}

// ---- data ------------------------------------------------------------------

TEST(OpInferTest, GatherRowsKeepsTheTablesDtypeAndColumns) {
  ExpectTypes(Infer(OpKind::kGatherRows, {U8({9, 7}), I32({3})}), {U8({3, 7})});
  ExpectTypes(Infer(OpKind::kGatherRows, {I32({9}), I32({3})}), {I32({3})});
}

TEST(OpInferTest, GatherRowsRefusesATableOfRankThreeAndFloatIndices) {
  ExpectRefused(Infer(OpKind::kGatherRows, {F32({9, 2, 2}), I32({3})}),
                "gather_rows: want table [N] or [N,C], indices i32[B], got "
                "f32[9,2,2], i32[3]");
  ExpectRefused(Infer(OpKind::kGatherRows, {F32({}), I32({3})}),
                "got f32[], i32[3]");
  ExpectRefused(Infer(OpKind::kGatherRows, {F32({9, 2}), F32({3})}),
                "got f32[9,2], f32[3]");
  ExpectRefused(Infer(OpKind::kGatherRows, {F32({9, 2}), I32({3, 1})}),
                "got f32[9,2], i32[3,1]");
}

TEST(OpInferTest, CastGivesF32OfTheSameShape) {
  ExpectTypes(Infer(OpKind::kCast, {U8({3, 7})}), {F32({3, 7})});
  ExpectTypes(Infer(OpKind::kCast, {I32({3})}), {F32({3})});
}

TEST(OpInferTest, CastRefusesAnotherTargetThanF32) {
  ExpectRefused(Infer(OpKind::kCast, {F32({3})}, CastAttrs{DType::kU8}),
                "cast: want to=f32, got to=u8");
}

TEST(OpInferTest, OneHotAddsAColumnPerClass) {
  ExpectTypes(Infer(OpKind::kOneHot, {I32({3})}, OneHotAttrs{10}),
              {F32({3, 10})});
}

TEST(OpInferTest, OneHotRefusesNoClassesAndFloatLabels) {
  ExpectRefused(Infer(OpKind::kOneHot, {I32({3})}),
                "one_hot: want classes >= 1, got classes=0");
  ExpectRefused(Infer(OpKind::kOneHot, {F32({3})}, OneHotAttrs{10}),
                "one_hot: want labels i32[B], got f32[3]");
  ExpectRefused(Infer(OpKind::kOneHot, {I32({3, 1})}, OneHotAttrs{10}),
                "got i32[3,1]");
}

// ---- elementwise and linear algebra ----------------------------------------

TEST(OpInferTest, UnaryOpsKeepTheShape) {
  for (const std::string op : {"scale", "relu", "tanh", "sigmoid", "gelu"}) {
    SCOPED_TRACE(op);
    ExpectTypes(Infer(op, {F32({2, 3})}), {F32({2, 3})});
    ExpectTypes(Infer(op, {F32({})}), {F32({})});
  }
}

TEST(OpInferTest, UnaryOpsRefuseIntegers) {
  for (const std::string op : {"scale", "relu", "tanh", "sigmoid", "gelu"}) {
    ExpectRefused(Infer(op, {I32({2, 3})}), op + ": want x f32, got i32[2,3]");
  }
}

TEST(OpInferTest, MulScalarKeepsTheShapeOfX) {
  ExpectTypes(Infer(OpKind::kMulScalar, {F32({2, 3}), F32({})}), {F32({2, 3})});
}

TEST(OpInferTest, MulScalarRefusesAVectorForTheScalar) {
  ExpectRefused(Infer(OpKind::kMulScalar, {F32({2, 3}), F32({1})}),
                "mul_scalar: want x f32, s f32[], got f32[2,3], f32[1]");
  ExpectRefused(Infer(OpKind::kMulScalar, {I32({2}), F32({})}),
                "got i32[2], f32[]");
}

TEST(OpInferTest, BinaryOpsKeepTheShape) {
  for (const std::string op : {"add", "mul", "relu_grad", "tanh_grad",
                               "sigmoid_grad", "gelu_grad", "mse_grad"}) {
    SCOPED_TRACE(op);
    ExpectTypes(Infer(op, {F32({5}), F32({5})}), {F32({5})});
  }
}

TEST(OpInferTest, BinaryOpsRefuseTwoShapesAndIntegers) {
  const std::vector<std::pair<std::string, std::string>> ops = {
      {"add", "add: want a, b f32 of one shape"},
      {"mul", "mul: want a, b f32 of one shape"},
      {"relu_grad", "relu_grad: want y, dy f32 of one shape"},
      {"tanh_grad", "tanh_grad: want y, dy f32 of one shape"},
      {"sigmoid_grad", "sigmoid_grad: want y, dy f32 of one shape"},
      {"gelu_grad", "gelu_grad: want x, dy f32 of one shape"},
      {"mse_grad", "mse_grad: want y, t f32 of one shape"},
      {"mse_loss", "mse_loss: want y, t f32 of one shape"}};
  for (const auto& [op, want] : ops) {
    ExpectRefused(Infer(op, {F32({2, 3}), F32({3, 2})}),
                  want + ", got f32[2,3], f32[3,2]");
    ExpectRefused(Infer(op, {I32({2}), I32({2})}),
                  want + ", got i32[2], i32[2]");
  }
}

TEST(OpInferTest, MatMulTakesAllFourTranspositions) {
  const TensorType a = F32({8, 4}), at = F32({4, 8});
  const TensorType b = F32({4, 3}), bt = F32({3, 4});
  const Types c = {F32({8, 3})};
  ExpectTypes(Infer(OpKind::kMatMul, {a, b}, Transposed(false, false)), c);
  ExpectTypes(Infer(OpKind::kMatMul, {at, b}, Transposed(true, false)), c);
  ExpectTypes(Infer(OpKind::kMatMul, {a, bt}, Transposed(false, true)), c);
  ExpectTypes(Infer(OpKind::kMatMul, {at, bt}, Transposed(true, true)), c);
}

TEST(OpInferTest, MatMulTakesAnEpilogue) {
  ExpectTypes(Infer(OpKind::kMatMul, {F32({8, 4}), F32({4, 3}), F32({3})},
                    MatMulAttrs{.bias = true, .activation = Activation::kRelu}),
              {F32({8, 3})});
  ExpectTypes(Infer(OpKind::kMatMul, {F32({8, 4}), F32({4, 3}), F32({8, 3})},
                    MatMulAttrs{.accumulate = true}),
              {F32({8, 3})});
}

TEST(OpInferTest, MatMulRefusesInnerSizesThatDiffer) {
  ExpectRefused(Infer(OpKind::kMatMul, {F32({8, 4}), F32({5, 3})}),
                "matmul: want a[m,k] x b[k,n], got f32[8,4] x f32[5,3]");
  ExpectRefused(Infer(OpKind::kMatMul, {F32({8, 4}), F32({4, 3})},
                      Transposed(true, false)),
                "matmul: want a[k,m] x b[k,n], got f32[8,4] x f32[4,3]");
  ExpectRefused(Infer(OpKind::kMatMul, {F32({8, 4}), F32({4, 3})},
                      Transposed(false, true)),
                "matmul: want a[m,k] x b[n,k], got f32[8,4] x f32[4,3]");
}

TEST(OpInferTest, MatMulRefusesVectorsAndIntegers) {
  ExpectRefused(Infer(OpKind::kMatMul, {F32({4}), F32({4, 3})}),
                "got f32[4] x f32[4,3]");
  ExpectRefused(Infer(OpKind::kMatMul, {F32({8, 4}), F32({4})}),
                "got f32[8,4] x f32[4]");
  ExpectRefused(Infer(OpKind::kMatMul, {U8({8, 4}), F32({4, 3})}),
                "got u8[8,4] x f32[4,3]");
}

TEST(OpInferTest, MatMulRefusesAnEpilogueThatDoesNotFit) {
  const TensorType a = F32({8, 4}), b = F32({4, 3});
  const MatMulAttrs bias{.bias = true}, accumulate{.accumulate = true};
  ExpectRefused(Infer(OpKind::kMatMul, {a, b, F32({8})}, bias),
                "want a[m,k] x b[k,n] + bias[n], got f32[8,4] x f32[4,3] + "
                "f32[8]");
  ExpectRefused(Infer(OpKind::kMatMul, {a, b}, bias),
                "+ bias[n], got f32[8,4] x f32[4,3]");
  ExpectRefused(Infer(OpKind::kMatMul, {a, b, F32({3})}),
                "want a[m,k] x b[k,n], got f32[8,4] x f32[4,3] + f32[3]");
  ExpectRefused(Infer(OpKind::kMatMul, {a, b, F32({3, 8})}, accumulate),
                "+ c[m,n], got f32[8,4] x f32[4,3] + f32[3,8]");
}

TEST(OpInferTest, MatMulRefusesAccumulateWithBiasOrActivation) {
  const TensorType a = F32({8, 4}), b = F32({4, 3}), c = F32({8, 3});
  const std::string message =
      "matmul: want accumulate or bias and activation, got both";
  ExpectRefused(Infer(OpKind::kMatMul, {a, b, c},
                      MatMulAttrs{.bias = true, .accumulate = true}),
                message);
  ExpectRefused(
      Infer(OpKind::kMatMul, {a, b, c},
            MatMulAttrs{.accumulate = true, .activation = Activation::kTanh}),
      message);
}

TEST(OpInferTest, AddBiasKeepsTheShapeOfX) {
  ExpectTypes(Infer(OpKind::kAddBias, {F32({2, 3}), F32({3})}), {F32({2, 3})});
}

TEST(OpInferTest, AddBiasRefusesABiasOfTheRows) {
  ExpectRefused(Infer(OpKind::kAddBias, {F32({2, 3}), F32({2})}),
                "add_bias: want x f32[B,C], b f32[C], got f32[2,3], f32[2]");
  ExpectRefused(Infer(OpKind::kAddBias, {F32({3}), F32({3})}),
                "got f32[3], f32[3]");
}

TEST(OpInferTest, ReduceRowsAndBroadcastRowsAreOpposite) {
  ExpectTypes(Infer(OpKind::kReduceRows, {F32({2, 3})}), {F32({3})});
  ExpectTypes(Infer(OpKind::kBroadcastRows, {F32({3})}, RowsAttrs{2}),
              {F32({2, 3})});
}

TEST(OpInferTest, ReduceRowsRefusesAVector) {
  ExpectRefused(Infer(OpKind::kReduceRows, {F32({3})}),
                "reduce_rows: want x f32[B,C], got f32[3]");
}

TEST(OpInferTest, BroadcastRowsRefusesNoRowsAndMatrices) {
  ExpectRefused(Infer(OpKind::kBroadcastRows, {F32({3})}),
                "broadcast_rows: want rows >= 1, got rows=0");
  ExpectRefused(Infer(OpKind::kBroadcastRows, {F32({2, 3})}, RowsAttrs{2}),
                "broadcast_rows: want x f32[C], got f32[2,3]");
}

// ---- losses ----------------------------------------------------------------

TEST(OpInferTest, SoftmaxAndItsGradientKeepTheShape) {
  ExpectTypes(Infer(OpKind::kSoftmax, {F32({2, 3})}), {F32({2, 3})});
  ExpectTypes(Infer(OpKind::kSoftmaxGrad, {F32({2, 3}), F32({2, 3})}),
              {F32({2, 3})});
}

TEST(OpInferTest, SoftmaxAndItsGradientRefuseOtherThanMatrices) {
  ExpectRefused(Infer(OpKind::kSoftmax, {F32({3})}),
                "softmax: want x f32[B,C], got f32[3]");
  ExpectRefused(Infer(OpKind::kSoftmaxGrad, {F32({3}), F32({3})}),
                "softmax_grad: want y, dy f32[B,C], got f32[3], f32[3]");
  ExpectRefused(Infer(OpKind::kSoftmaxGrad, {F32({2, 3}), F32({3, 2})}),
                "got f32[2,3], f32[3,2]");
}

TEST(OpInferTest, LossesAreScalars) {
  ExpectTypes(Infer(OpKind::kNllLoss, {F32({2, 3}), I32({2})}), {F32({})});
  ExpectTypes(Infer(OpKind::kCountCorrect, {F32({2, 3}), I32({2})}), {F32({})});
  ExpectTypes(Infer(OpKind::kMseLoss, {F32({2, 3}), F32({2, 3})}), {F32({})});
}

TEST(OpInferTest, AMeanIsOverAtLeastTheRowsGiven) {
  const TensorType z = F32({5, 3}), labels = I32({5});
  const std::vector<std::pair<OpKind, Types>> ops = {
      {OpKind::kNllLoss, {z, labels}},
      {OpKind::kMseLoss, {z, z}},
      {OpKind::kMseGrad, {z, z}},
      {OpKind::kLossGrad, {z, labels}}};
  for (const auto& [kind, types] : ops) {
    const auto with_rows = [kind = kind](int64_t rows) {
      return kind == OpKind::kLossGrad ? Attrs(LossGradAttrs{.rows = rows})
                                       : Attrs(MeanAttrs{rows});
    };
    EXPECT_OK(Infer(kind, types, with_rows(5)));
    EXPECT_OK(Infer(kind, types, with_rows(64)));
    for (int64_t rows : {-1, 4}) {
      ExpectRefused(Infer(kind, types, with_rows(rows)),
                    absl::StrCat(GetOpDef(kind).name,
                                 ": want rows 0 or >= 5, got rows=", rows));
    }
  }
  ExpectRefused(Infer(OpKind::kMseLoss, {F32({}), F32({})}, MeanAttrs{1}),
                "mse_loss: want rows 0 with a scalar, got rows=1");
}

TEST(OpInferTest, MinusOneHotKeepsTheShape) {
  ExpectTypes(Infer(OpKind::kMinusOneHot, {F32({2, 3}), I32({2})}),
              {F32({2, 3})});
}

TEST(OpInferTest, OpsWithLabelsWantOnePerRow) {
  const std::vector<std::pair<OpKind, std::string>> ops = {
      {OpKind::kNllLoss, "nll_loss: want logits f32[B,C], labels i32[B]"},
      {OpKind::kMinusOneHot, "minus_one_hot: want p f32[B,C], labels i32[B]"},
      {OpKind::kCountCorrect,
       "count_correct: want logits f32[B,C], labels i32[B]"}};
  for (const auto& [kind, want] : ops) {
    ExpectRefused(Infer(kind, {F32({2, 3}), I32({3})}),
                  want + ", got f32[2,3], i32[3]");
    ExpectRefused(Infer(kind, {F32({2, 3}), F32({2})}),
                  want + ", got f32[2,3], f32[2]");
    ExpectRefused(Infer(kind, {F32({2}), I32({2})}),
                  want + ", got f32[2], i32[2]");
  }
}

// ---- updates ---------------------------------------------------------------

TEST(OpInferTest, UpdatesGiveTheParamAndItsState) {
  const TensorType w = F32({4, 3}), s = F32({});
  ExpectTypes(Infer(OpKind::kSgdUpdate, {w, w, s}), {w});
  ExpectTypes(Infer(OpKind::kMomentumUpdate, {w, w, w, s}), {w, w});
  ExpectTypes(Infer(OpKind::kAdamUpdate, {w, w, w, w, s, s}), {w, w, w});
}

TEST(OpInferTest, UpdatesRefuseAnotherShapeOfGradientStateOrScalar) {
  const TensorType w = F32({4, 3}), v = F32({3, 4}), s = F32({});
  ExpectRefused(Infer(OpKind::kSgdUpdate, {w, v, s}),
                "sgd_update: want w, dw f32 of one shape, lr[, weight_decay] "
                "f32[], got f32[4,3], f32[3,4], f32[]");
  ExpectRefused(Infer(OpKind::kSgdUpdate, {w, w, F32({1})}),
                "got f32[4,3], f32[4,3], f32[1]");
  ExpectRefused(Infer(OpKind::kSgdUpdate, {I32({4}), I32({4}), s}),
                "got i32[4], i32[4], f32[]");
  ExpectRefused(
      Infer(OpKind::kMomentumUpdate, {w, w, v, s}),
      "momentum_update: want w, dw, v f32 of one shape, lr[, momentum, "
      "weight_decay] f32[], got f32[4,3], f32[4,3], f32[3,4], f32[]");
  ExpectRefused(Infer(OpKind::kAdamUpdate, {w, w, w, w, s, F32({2})}),
                "adam_update: want w, dw, m, v f32 of one shape, lr, step[, "
                "weight_decay] f32[], got f32[4,3], f32[4,3], f32[4,3], "
                "f32[4,3], f32[], f32[2]");
}

TEST(OpInferTest, UpdatesTakeHyperParametersAsOperandsAllOrNone) {
  const TensorType w = F32({4, 3}), s = F32({});
  ExpectTypes(Infer(OpKind::kSgdUpdate, {w, w, s, s}), {w});
  ExpectTypes(Infer(OpKind::kMomentumUpdate, {w, w, w, s, s, s}), {w, w});
  ExpectTypes(Infer(OpKind::kAdamUpdate, {w, w, w, w, s, s, s}), {w, w, w});
  ExpectRefused(Infer(OpKind::kMomentumUpdate, {w, w, w, s, s}),
                "momentum_update: want w, dw, v f32 of one shape, lr[, "
                "momentum, weight_decay] f32[], got");
  ExpectRefused(Infer(OpKind::kSgdUpdate, {w, w, s, s}, SgdAttrs{0.5f}),
                "sgd_update: want weight_decay 0 beside the operand, got "
                "weight_decay=0.5");
}

// ---- parts of values -------------------------------------------------------

TEST(OpInferTest, ASliceCutsOneAxis) {
  ExpectTypes(Infer(OpKind::kSlice, {U8({5, 3})}, SliceAttrs{0, 1, 4}),
              {U8({4, 3})});
  ExpectTypes(Infer(OpKind::kSlice, {F32({5, 3})}, SliceAttrs{1, 2, 1}),
              {F32({5, 1})});
  ExpectTypes(Infer(OpKind::kSlice, {I32({5})}, SliceAttrs{0, 0, 5}),
              {I32({5})});
}

TEST(OpInferTest, ASliceRefusesWhatItsOperandHasNot) {
  ExpectRefused(Infer(OpKind::kSlice, {F32({})}, SliceAttrs{0, 0, 1}),
                "slice: want x [N] or [B,C], got f32[]");
  ExpectRefused(Infer(OpKind::kSlice, {F32({5})}, SliceAttrs{1, 0, 1}),
                "slice: want axis of f32[5], got axis=1");
  for (const SliceAttrs& a : {SliceAttrs{0, -1, 2}, SliceAttrs{0, 0, 0},
                              SliceAttrs{0, 2, 4}, SliceAttrs{0, 6, 1}}) {
    ExpectRefused(Infer(OpKind::kSlice, {F32({5, 3})}, a),
                  absl::StrCat("slice: want a range within 5, got begin=",
                               a.begin, ", size=", a.size));
  }
}

TEST(OpInferTest, AnExchangeGivesTheWholeValueOrARange) {
  const auto infer = [](const TensorType& x, const ExchangeAttrs& attrs) {
    return Infer(OpKind::kExchange, {x}, attrs);
  };
  ExpectTypes(infer(F32({}), {.workers = 2}), {F32({})});
  ExpectTypes(infer(F32({5, 3}), {.workers = 2}), {F32({5, 3})});
  ExpectTypes(
      infer(F32({5, 3}), {.workers = 2, .to = 1, .begin = 1, .size = 2}),
      {F32({5, 2})});
  ExpectTypes(infer(F32({5, 3}), {.workers = 2, .from = 0, .full = 11}),
              {F32({11, 3})});
  ExpectTypes(infer(F32({5, 3}), {.workers = 2,
                                  .from = 0,
                                  .to = 1,
                                  .full = 11,
                                  .begin = 2,
                                  .size = 1}),
              {F32({11, 1})});
}

TEST(OpInferTest, AnExchangeRefusesAttributesThatDoNotFit) {
  const std::vector<std::pair<ExchangeAttrs, std::string>> cases = {
      {{}, "want workers >= 1, index >= 0, got workers=0, index=0"},
      {{.index = -1, .workers = 2}, "got workers=2, index=-1"},
      {{.workers = 2, .full = 5}, "want full=0 of a sum, got full=5"},
      {{.workers = 2, .from = 2, .full = 5}, "want from of f32[5,3], got from"},
      {{.workers = 2, .from = 0, .full = 4},
       "want full of 2 ranges, one 5 long, got full=4"},
      {{.workers = 3, .from = 0, .full = 6}, "got full=6"},
      {{.workers = 1, .from = 0, .full = 6}, "got full=6"},
      {{.workers = 2, .to = 2}, "want to of f32[5,3], got to=2"},
      {{.workers = 2, .to = 0, .begin = 3, .size = 3},
       "want a range within 5, got begin=3, size=3"},
      {{.workers = 2, .size = 3}, "want begin=0, size=0 of a whole value"}};
  for (const auto& [attrs, message] : cases) {
    ExpectRefused(Infer(OpKind::kExchange, {F32({5, 3})}, attrs), "exchange: ");
    ExpectRefused(Infer(OpKind::kExchange, {F32({5, 3})}, attrs), message);
  }
  ExpectRefused(Infer(OpKind::kExchange, {I32({5})}, ExchangeAttrs{}),
                "exchange: want x f32, got i32[5]");
}

// ---- fused ops -------------------------------------------------------------

TEST(OpInferTest, GatherConvertGivesF32Rows) {
  ExpectTypes(Infer(OpKind::kGatherConvert, {U8({9, 7}), I32({3})}),
              {F32({3, 7})});
}

TEST(OpInferTest, GatherConvertRefusesAFloatTable) {
  ExpectRefused(Infer(OpKind::kGatherConvert, {F32({9, 7}), I32({3})}),
                "gather_convert: want table u8[N,C], indices i32[B], got "
                "f32[9,7], i32[3]");
  ExpectRefused(Infer(OpKind::kGatherConvert, {U8({9, 7}), F32({3})}),
                "got u8[9,7], f32[3]");
}

TEST(OpInferTest, LossGradsOperandsAndResultsFollowItsAttributes) {
  const TensorType z = F32({5, 3}), s = F32({}), b = F32({3});
  ExpectTypes(Infer(OpKind::kLossGrad, {z, I32({5})}), {s, z, s});
  ExpectTypes(Infer(OpKind::kLossGrad, {z, I32({99}), I32({5})},
                    LossGradAttrs{.gather = true}),
              {s, z, s});
  ExpectTypes(Infer(OpKind::kLossGrad, {z, I32({5}), s},
                    LossGradAttrs{.scaled = true, .bias = BiasGrad::kGrad}),
              {s, z, s, b});
  ExpectTypes(Infer(OpKind::kLossGrad, {z, I32({99}), I32({5}), s, b},
                    LossGradAttrs{.loss = Loss::kMse,
                                  .gather = true,
                                  .scaled = true,
                                  .bias = BiasGrad::kUpdate}),
              {s, z, s, b});
}

TEST(OpInferTest, LossGradRefusesOperandsItsAttributesDoNotName) {
  const TensorType z = F32({5, 3}), s = F32({});
  ExpectRefused(Infer(OpKind::kLossGrad, {z, I32({4})}),
                "loss_grad: want logits f32[B,C], labels i32[B], got "
                "f32[5,3], i32[4]");
  ExpectRefused(Infer(OpKind::kLossGrad, {z, I32({5}), s}),
                "labels i32[B], got f32[5,3], i32[5], f32[]");
  ExpectRefused(Infer(OpKind::kLossGrad, {z, I32({99}), I32({4})},
                      LossGradAttrs{.gather = true}),
                "labels i32[N], indices i32[B], got f32[5,3], i32[99], "
                "i32[4]");
  ExpectRefused(
      Infer(OpKind::kLossGrad, {z, I32({5})}, LossGradAttrs{.scaled = true}),
      "labels i32[B], lr f32[], got f32[5,3], i32[5]");
  ExpectRefused(Infer(OpKind::kLossGrad, {z, I32({5}), F32({5})},
                      LossGradAttrs{.bias = BiasGrad::kUpdate}),
                "labels i32[B], b f32[C], got f32[5,3], i32[5], f32[5]");
}

TEST(OpInferTest, ActivationGradsResultsFollowItsAttributes) {
  const TensorType y = F32({5, 3}), b = F32({3});
  ActivationGradAttrs attrs{.activation = Activation::kRelu};
  ExpectTypes(Infer(OpKind::kActivationGrad, {y, y}, attrs), {y});
  attrs.bias = BiasGrad::kGrad;
  ExpectTypes(Infer(OpKind::kActivationGrad, {y, y}, attrs), {y, b});
  attrs.bias = BiasGrad::kUpdate;
  ExpectTypes(Infer(OpKind::kActivationGrad, {y, y, b}, attrs), {y, b});
}

TEST(OpInferTest, ActivationGradRefusesOperandsItsAttributesDoNotName) {
  const TensorType y = F32({5, 3});
  ActivationGradAttrs attrs{.activation = Activation::kRelu};
  ExpectRefused(Infer(OpKind::kActivationGrad, {y, F32({3, 5})}, attrs),
                "relu_grad: want y, dy f32 of one shape, got f32[5,3], "
                "f32[3,5]");
  ExpectRefused(Infer(OpKind::kActivationGrad, {y, y, F32({3})}, attrs),
                "got f32[5,3], f32[5,3], f32[3]");
  attrs = {.activation = Activation::kGelu, .bias = BiasGrad::kUpdate};
  ExpectRefused(
      Infer(OpKind::kActivationGrad, {y, y, F32({5})}, attrs),
      "want x, dy f32[B,C], b f32[C], got f32[5,3], f32[5,3], f32[5]");
  attrs = {.activation = Activation::kNone};
  ExpectRefused(Infer(OpKind::kActivationGrad, {y, y}, attrs),
                "activation_grad: want an activation, got none");
}

// ---- sparse input ----------------------------------------------------------

// Rows of 9 values take 16 + 2 * 3 + 16 words.
TEST(OpInferTest, GatherSparseGivesRowsAsWideAsTheFormatNeeds) {
  ExpectTypes(Infer(OpKind::kGatherSparse, {U8({99, 9}), I32({4})}),
              {I32({4, 38})});
}

TEST(OpInferTest, GatherSparseRefusesOtherTables) {
  ExpectRefused(Infer(OpKind::kGatherSparse, {F32({99, 9}), I32({4})}),
                "gather_sparse: want table u8[N,K], indices i32[B], K up to "
                "8388607, got f32[99,9], i32[4]");
  ExpectRefused(Infer(OpKind::kGatherSparse, {U8({9}), I32({4})}),
                "got u8[9], i32[4]");
  ExpectRefused(Infer(OpKind::kGatherSparse, {U8({1, 1 << 23}), I32({4})}),
                "got u8[1,8388608], i32[4]");
}

TEST(OpInferTest, SparseProductsFollowTheirAttributes) {
  const TensorType x = I32({4, 38}), w = F32({9, 7}), dz = F32({4, 7});
  ExpectTypes(Infer(OpKind::kSparseMatMul, {x, w}), {dz});
  ExpectTypes(Infer(OpKind::kSparseMatMul, {x, w, F32({7})},
                    SparseMatMulAttrs{.bias = true}),
              {dz});
  ExpectTypes(Infer(OpKind::kSparseOuter, {x, dz}, SparseOuterAttrs{.rows = 9}),
              {w});
  ExpectTypes(Infer(OpKind::kSparseOuter, {x, dz, w},
                    SparseOuterAttrs{.rows = 9, .accumulate = true}),
              {w});
}

TEST(OpInferTest, SparseProductsRefuseOperandsTheyDoNotName) {
  const TensorType x = I32({4, 38}), w = F32({9, 7}), dz = F32({4, 7});
  ExpectRefused(Infer(OpKind::kSparseMatMul, {F32({4, 9}), w}),
                "sparse_matmul: want x i32[B,width of K], w f32[K,C], got "
                "f32[4,9], f32[9,7]");
  ExpectRefused(Infer(OpKind::kSparseMatMul, {x, F32({10, 7})}),
                "got i32[4,38], f32[10,7]");
  ExpectRefused(Infer(OpKind::kSparseMatMul, {x, w, F32({9})},
                      SparseMatMulAttrs{.bias = true}),
                "w f32[K,C], bias f32[C], got i32[4,38], f32[9,7], f32[9]");
  ExpectRefused(Infer(OpKind::kSparseOuter, {x, dz}),
                "sparse_outer: want rows >= 1, got rows=0");
  ExpectRefused(
      Infer(OpKind::kSparseOuter, {x, dz}, SparseOuterAttrs{.rows = 10}),
      "sparse_outer: want x i32[B,40], dz f32[B,C], got i32[4,38], "
      "f32[4,7]");
  ExpectRefused(
      Infer(OpKind::kSparseOuter, {x, F32({5, 7})}, SparseOuterAttrs{9, false}),
      "dz f32[B,C], got i32[4,38], f32[5,7]");
  ExpectRefused(Infer(OpKind::kSparseOuter, {x, dz, F32({8, 7})},
                      SparseOuterAttrs{9, true}),
                "dz f32[B,C], c f32[9,C], got i32[4,38], f32[4,7], f32[8,7]");
}

// ---- all -------------------------------------------------------------------

TEST(OpInferTest, TooFewOperandsAreRefusedBeforeTheRule) {
  ExpectRefused(Infer(OpKind::kAdd, {F32({2})}), "want 2 operands, got 1");
}

}  // namespace
}  // namespace onestep
