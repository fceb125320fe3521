// SPDX-License-Identifier: Apache-2.0
// The op set and each op's rules. The rows are in ops.def; the rules in
// op_infer.cc (shapes), op_grad.cc (gradients), op_cost.cc (FLOPs, bytes),
// op_batch.cc (many models) and op_partition.cc (workers).
#ifndef ONESTEP_COMPILER_IR_OP_H_
#define ONESTEP_COMPILER_IR_OP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/attrs.h"
#include "compiler/ir/placement.h"
#include "runtime/base/types.h"

namespace onestep {

class Graph;
struct GradContext;
struct Node;
struct Value;

enum class OpKind : uint8_t {
#define OP(kind, ...) k##kind,
#include "compiler/ir/ops.def"
#undef OP
};

// Traits are a bit set.
enum OpTraits : uint32_t {
  kNone = 0,
  kLeaf = 1,         // bound from outside, no operands
  kElementwise = 2,  // a result may lie in the memory of an operand of its size
  kNoGrad = 4,       // never differentiated
  kUpdate = 8,       // result i may lie in the memory of its old value
};

inline constexpr int kVariadic = -1;

// What an operand is in a node that computes for each of many models, as one
// does when any operand is per model; its results then all are.
enum class ModelAxis : uint8_t {
  kPerModel,  // a tensor for each model; one that is shared is broadcast first
  kShared,    // one tensor for all models
  kEither,
};

struct OpCost {
  double flops = 0;  // a multiply and an add count as two
  double bytes = 0;  // operands read once, results written once
};

// Result types from operand types and attributes, or InvalidArgument with
// what was wanted and the shapes it got: "matmul: want a[m,k] x b[k,n], got
// f32[8,4] x f32[5,3]".
using InferFn = absl::StatusOr<std::vector<TensorType>> (*)(
    const std::vector<TensorType>& operands, const Attrs& attrs);
using GradFn = absl::StatusOr<std::vector<Value>> (*)(const GradContext&);
// Of one model's FLOPs, of all models' bytes; see CostOf.
using CostFn = OpCost (*)(const Node& node);
// One per operand, of which there are `operands`.
using BatchFn = std::vector<ModelAxis> (*)(int operands, const Attrs& attrs);

struct OpDef {
  OpKind kind;
  const char* name;
  int min_operands;
  int max_operands;
  int results;  // kVariadic: as many as infer returns
  uint32_t traits;
  Attrs default_attrs;
  InferFn infer;
  GradFn grad;
  CostFn cost;
  BatchFn batch;
  PartitionFn partition;

  bool Has(OpTraits trait) const { return (traits & trait) != 0; }
};

const OpDef& GetOpDef(OpKind kind);
// nullopt when no op has this text name.
std::optional<OpKind> FindOp(absl::string_view name);
// All ops in the order of ops.def.
const std::vector<OpDef>& AllOps();

// Relu and its like, both ways; kNone when `kind` is no activation.
Activation ActivationOf(OpKind kind);
Activation ActivationOfGrad(OpKind kind);
OpKind ActivationOp(Activation activation);
OpKind ActivationGradOp(Activation activation);

const char* ToString(Loss);
const char* ToString(BiasGrad);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OP_H_
