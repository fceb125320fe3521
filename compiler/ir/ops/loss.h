// SPDX-License-Identifier: Apache-2.0
// Losses, their gradients, and what counts correct answers.
#ifndef ONESTEP_COMPILER_IR_OPS_LOSS_H_
#define ONESTEP_COMPILER_IR_OPS_LOSS_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/fields.h"
#include "compiler/ir/ops/activation.h"
#include "compiler/ir/value.h"

namespace onestep {

enum class Loss : uint8_t { kSoftmaxXent, kMse };
const char* ToString(Loss);

// A mean over the batch. `rows` is how many the batch has when the op is given
// a part of them, so that the parts add up; 0: it is given all.
struct MeanAttrs {
  int64_t rows = 0;
  ONESTEP_FIELDS(MeanAttrs, rows);
};

struct LossGradAttrs {
  Loss loss = Loss::kSoftmaxXent;
  bool gather = false;
  bool scaled = false;
  BiasGrad bias = BiasGrad::kNone;
  int64_t rows = 0;  // as of MeanAttrs
  ONESTEP_FIELDS(LossGradAttrs, loss, gather, scaled, bias, rows);
};

// So many columns, the first, have the label 1; 0 where labels are given.
struct PositivesAttrs {
  int64_t positives = 0;
  ONESTEP_FIELDS(PositivesAttrs, positives);
};

struct LossGradOp {
  explicit LossGradOp(const Node& node);
  std::vector<Value> Operands() const;

  LossGradAttrs attrs;
  Value logits, labels;
  Value indices;  // where attrs.gather
  Value lr;       // where attrs.scaled
  Value bias;     // where attrs.bias is update
  enum Result { kLoss, kDlogits, kCorrect, kBiasGrad };
};

// Of sigmoid_bce and its gradient.
struct SigmoidBceOp {
  explicit SigmoidBceOp(const Node& node);

  int64_t positives;
  Value z, mask, weights;
  Value labels;  // or no value
};

// Rows of the batch that a loss or its gradient divides by: its attribute
// `rows` or, where that is 0, those of its operand 0 (of a scalar, 1).
// REQUIRES: the op has the attribute.
int64_t BatchRows(const Node& node);
// Likewise elements: BatchRows times the columns.
int64_t BatchElements(const Node& node);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OPS_LOSS_H_
