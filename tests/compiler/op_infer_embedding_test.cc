// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/infer_types.h"

namespace onestep {
namespace {

TEST(OpInferEmbeddingTest, ScatterAddGivesItsTable) {
  ExpectTypes(Infer(OpKind::kScatterAdd, {F32({9, 7}), I32({3}), F32({3, 7})}),
              {F32({9, 7})});
  ExpectTypes(Infer(OpKind::kScatterAdd, {F32({9}), I32({3}), F32({3})}),
              {F32({9})});
}

TEST(OpInferEmbeddingTest, ScatterAddRefusesRowsThatAreNotTheTables) {
  ExpectRefused(
      Infer(OpKind::kScatterAdd, {F32({9, 7}), I32({3}), F32({3, 6})}),
      "scatter_add: want table f32[N] or f32[N,C], indices i32[B], x f32[B] or "
      "f32[B,C], got f32[9,7], i32[3], f32[3,6]");
  ExpectRefused(Infer(OpKind::kScatterAdd, {U8({9}), I32({3}), U8({3})}),
                "got u8[9], i32[3], u8[3]");
  ExpectRefused(Infer(OpKind::kScatterAdd, {F32({}), I32({3}), F32({3})}),
                "got f32[], i32[3], f32[3]");
  ExpectRefused(Infer(OpKind::kScatterAdd, {F32({9}), F32({3}), F32({3})}),
                "got f32[9], f32[3], f32[3]");
}

TEST(OpInferEmbeddingTest, BlockMatMulStacksItsBlocks) {
  ExpectTypes(Infer(OpKind::kBlockMatMul, {F32({6, 7}), F32({14, 5})},
                    BlockMatMulAttrs{2, false, false}),
              {F32({6, 5})});
  ExpectTypes(Infer(OpKind::kBlockMatMul, {F32({14, 3}), F32({14, 5})},
                    BlockMatMulAttrs{2, true, false}),
              {F32({6, 5})});
  ExpectTypes(Infer(OpKind::kBlockMatMul, {F32({6, 7}), F32({10, 7})},
                    BlockMatMulAttrs{2, false, true}),
              {F32({6, 5})});
}

TEST(OpInferEmbeddingTest, BlockMatMulRefusesBlocksThatDoNotFit) {
  ExpectRefused(Infer(OpKind::kBlockMatMul, {F32({6, 7}), F32({14, 5})},
                      BlockMatMulAttrs{0, false, false}),
                "block_matmul: want blocks >= 1, got blocks=0");
  ExpectRefused(Infer(OpKind::kBlockMatMul, {F32({6, 7}), F32({14, 5})},
                      BlockMatMulAttrs{4, false, false}),
                "block_matmul: want 4 blocks of a[m,k] x b[k,n], got f32[6,7], "
                "f32[14,5]");
  ExpectRefused(Infer(OpKind::kBlockMatMul, {F32({6, 7}), F32({14, 5})},
                      BlockMatMulAttrs{2, true, true}),
                "want 2 blocks of a[k,m] x b[n,k], got f32[6,7], f32[14,5]");
}

TEST(OpInferEmbeddingTest, SigmoidBceSumsAndItsGradientIsOfTheLogits) {
  const Types pairs = {F32({6, 5}), F32({6}), F32({2, 5})};
  ExpectTypes(Infer(OpKind::kSigmoidBce, pairs, PositivesAttrs{5}), {F32({})});
  ExpectTypes(Infer(OpKind::kSigmoidBceGrad, pairs), {F32({6, 5})});
  Types labelled = pairs;
  labelled.push_back(F32({2, 5}));
  ExpectTypes(Infer(OpKind::kSigmoidBce, labelled), {F32({})});
}

TEST(OpInferEmbeddingTest, SigmoidBceRefusesWhatDoesNotFitItsLogits) {
  const TensorType z = F32({6, 5}), mask = F32({6}), w = F32({2, 5});
  ExpectRefused(Infer(OpKind::kSigmoidBce, {z, mask, F32({4, 5})}),
                "sigmoid_bce: want z f32[B,C], mask f32[B], weights f32[G,C][, "
                "y f32[G,C]], B a multiple of G, got f32[6,5], f32[6], "
                "f32[4,5]");
  ExpectRefused(Infer(OpKind::kSigmoidBce, {z, F32({5}), w}), "f32[5]");
  ExpectRefused(Infer(OpKind::kSigmoidBce, {z, mask, w, F32({1, 5})}),
                "f32[1,5]");
  ExpectRefused(Infer(OpKind::kSigmoidBceGrad, {z, mask, w}, PositivesAttrs{6}),
                "sigmoid_bce_grad: want positives 0 to 5, got positives=6");
  ExpectRefused(Infer(OpKind::kSigmoidBce, {z, mask, w, w}, PositivesAttrs{1}),
                "want positives 0 beside labels, got positives=1");
}

TEST(OpInferEmbeddingTest, WindowsGiveTheirLossAndTheirTables) {
  const TensorType in = F32({9, 7}), out = F32({8, 7}), lr = F32({});
  const TensorType c = I32({3}), n = I32({5}), row = F32({1, 5});
  const Types want = {lr, in, out};
  ExpectTypes(Infer(OpKind::kSgnsWindow, {in, out, c, F32({3}), n, row, lr},
                    PositivesAttrs{1}),
              want);
  ExpectTypes(
      Infer(OpKind::kSgnsWindow, {in, out, c, F32({3}), n, row, row, lr}),
      want);
  const TensorType mean = F32({1, 3});
  ExpectTypes(Infer(OpKind::kCbowWindow, {in, out, c, mean, mean, n, row, lr},
                    PositivesAttrs{1}),
              want);
  ExpectTypes(
      Infer(OpKind::kCbowWindow, {in, out, c, mean, mean, n, row, row, lr}),
      want);
}

TEST(OpInferEmbeddingTest, WindowsRefuseWhatDoesNotFit) {
  const TensorType in = F32({9, 7}), out = F32({8, 7}), lr = F32({});
  const TensorType c = I32({3}), n = I32({5}), row = F32({1, 5});
  const TensorType mask = F32({3}), mean = F32({1, 3});
  ExpectRefused(
      Infer(OpKind::kSgnsWindow, {in, F32({8, 6}), c, mask, n, row, lr}),
      "sgns_window: want in f32[V,D], out f32[U,D], contexts i32[C], mask "
      "f32[C], outputs i32[N], weights[, y] f32[1,N], lr f32[], got f32[9,7], "
      "f32[8,6], i32[3]");
  ExpectRefused(Infer(OpKind::kSgnsWindow, {in, out, c, mean, n, row, lr}),
                "got f32[9,7], f32[8,7], i32[3], f32[1,3]");
  ExpectRefused(Infer(OpKind::kSgnsWindow, {in, out, c, mask, n, row, lr},
                      PositivesAttrs{6}),
                "want positives 0 to 5, got positives=6");
  ExpectRefused(
      Infer(OpKind::kSgnsWindow, {in, out, c, mask, n, row, F32({1, 4}), lr}),
      "weights[, y] f32[1,N]");
  ExpectRefused(
      Infer(OpKind::kCbowWindow, {in, out, c, mask, mean, n, row, lr}),
      "mean, spread f32[1,C]");
}

}  // namespace
}  // namespace onestep
