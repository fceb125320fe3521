// SPDX-License-Identifier: Apache-2.0
// The textbook train step of a small network, as a trainer builds it.
#ifndef ONESTEP_TESTS_COMPILER_PASSES_MLP_GRAPH_H_
#define ONESTEP_TESTS_COMPILER_PASSES_MLP_GRAPH_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"

namespace onestep {

// A further use of a value that a fusion wants for itself.
enum class ExtraUse : uint8_t {
  kNone,
  kHidden,         // result: the first layer's activation
  kPreActivation,  // result: its operand
  kProbabilities,  // result: softmax(logits)
  kGradient,       // result: the first param's gradient
  kOldWeight,      // result: the last weight before the update
  kLabels,         // result: one_hot of the batch's labels
};
inline constexpr int kNumExtraUses = 7;

struct MlpSpec {
  std::vector<int64_t> widths = {784, 128, 10};  // input, hidden.., classes
  int64_t batch = 32;
  int64_t table_rows = 60000;
  Activation activation = Activation::kRelu;
  Loss loss = Loss::kSoftmaxXent;
  OpKind update = OpKind::kSgdUpdate;
  float weight_decay = 0;
  bool share_weights = false;  // of layers next to each other that fit
  bool residual = false;       // a layer's input is added where it fits
  ExtraUse extra = ExtraUse::kNone;
};

// Inputs images u8[N,D], labels i32[N], indices i32[B], lr and, for adam,
// step; params w1, b1, w2, b2, .. and their states m_w1, v_w1, ..; results
// loss and correct.
Graph MakeMlp(const MlpSpec& spec);

}  // namespace onestep

#endif  // ONESTEP_TESTS_COMPILER_PASSES_MLP_GRAPH_H_
