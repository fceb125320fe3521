// SPDX-License-Identifier: Apache-2.0
// The op set. The rows are in ops.def; what each op means, its rules, is in
// ops/<family>.cc.
#ifndef ONESTEP_COMPILER_IR_OP_H_
#define ONESTEP_COMPILER_IR_OP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/attrs.h"
#include "compiler/ir/placement.h"
#include "compiler/ir/value.h"
#include "runtime/base/types.h"

namespace onestep {

class Graph;
struct GradContext;
struct Node;

enum class OpKind : uint8_t {
#define OP(kind, ...) k##kind,
#include "compiler/ir/ops.def"
#undef OP
};

// Traits are a bit set.
enum OpTraits : uint32_t {
  kNone = 0,
  kLeaf = 1,          // bound from outside, no operands
  kUpdate = 2,        // an optimizer's: result 0 is the new value of operand 0
  kModels = 4,        // its loop on the CPU takes many models at once; the
                      // loop of an op without it is called for each model
  kDenseProduct = 8,  // its FLOPs are those of a dense product of matrices...
  kSparseProduct = 16,  // ... or of one over nonzeros, for predictions of time
};

// Where an op can run: a bit set of the lowerings (compiler/lower) that have
// a Lower<Kind> for it. One that is named and missing is a link error.
enum Backends : uint32_t {
  kNowhere = 0,
  kLoops = 1,   // our own loops on the CPU
  kOnednn = 2,  // a oneDNN primitive, for some attributes at least
  kCuda = 4,    // a CUDA kernel of ours
  kEverywhere = kLoops | kOnednn | kCuda,
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

// The operands by which a gather reads rows: row indices[r] of the table is
// read for row r of the result.
struct RowLookup {
  int table = 0, indices = 0;
};

// Result types from operand types and attributes, or InvalidArgument with
// what was wanted and the shapes it got: "matmul: want a[m,k] x b[k,n], got
// f32[8,4] x f32[5,3]". The number of operands is within the bounds of ops.def.
using InferFn = absl::StatusOr<std::vector<TensorType>> (*)(
    const std::vector<TensorType>& operands, const Attrs& attrs);
// The gradients of the operands from those of the results. Makes nodes only for
// the operands whose gradient is wanted, and gives no value for the others.
using GradFn = absl::StatusOr<std::vector<Value>> (*)(const GradContext&);
// Of one model's FLOPs, of all models' bytes; see CostOf. An addition, a
// multiplication, a comparison and a call of exp, log, erf, tanh or sqrt each
// count as one FLOP.
using CostFn = OpCost (*)(const Node& node);
// One per operand, of which there are `operands`.
using BatchFn = std::vector<ModelAxis> (*)(int operands, const Attrs& attrs);
// Every useful way to compute the node on many workers; see placement.h.
using PartitionFn = std::vector<Strategy> (*)(const Node& node);
// Whether result `result` may be written over operand `operand`, whose type it
// has, while the op runs.
using AliasFn = bool (*)(const Node& node, int result, int operand);
using LookupFn = std::optional<RowLookup> (*)(const Node& node);
// The names in the text form of an op that has other names than that of its
// row, each with the attributes it stands for.
struct OpName {
  std::string text;
  Attrs attrs;
};
using NamesFn = std::vector<OpName> (*)();

// A rule that cannot be left out: without it the struct below does not compile.
template <typename Fn>
class Required {
 public:
  template <typename F>
  constexpr Required(F fn) : fn_(fn) {}
  constexpr operator Fn() const { return fn_; }

 private:
  Fn fn_;
};

// What an op means to the compiler.
struct OpRules {
  Required<InferFn> infer;
  Required<GradFn> grad;  // NotDifferentiated: of updates and what passes make
  Required<CostFn> cost;
  Required<BatchFn> batch;
  Required<PartitionFn> partition;
  Required<AliasFn> alias;
  LookupFn lookup = nullptr;  // of gathers
  NamesFn names = nullptr;
};

struct OpDef {
  OpKind kind;
  const char* name;
  int min_operands;
  int max_operands;
  int results;  // kVariadic: as many as infer returns
  uint32_t traits;
  uint32_t backends;
  Attrs default_attrs;
  const OpRules& rules;

  bool Has(OpTraits trait) const { return (traits & trait) != 0; }
  bool RunsOn(Backends backend) const { return (backends & backend) != 0; }
  bool is_differentiable() const;
};

const OpDef& GetOpDef(OpKind kind);
// All ops in the order of ops.def.
const std::vector<OpDef>& AllOps();

// An op as the text form names it: "relu" is the op `activation` with the
// attribute relu.
struct NamedOp {
  OpKind kind;
  Attrs attrs;
};
// nullopt when no op has this text name.
std::optional<NamedOp> FindOp(absl::string_view name);
// The text name of an op with these attributes.
std::string NameOf(OpKind kind, const Attrs& attrs);
// What the name stands for: the attributes that need not be printed.
Attrs AttrsOfName(OpKind kind, const Attrs& attrs);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OP_H_
