// SPDX-License-Identifier: Apache-2.0
// Attributes of ops: one typed struct each. Visit(v) calls v("name", field)
// for each field; printing, parsing and comparing are written once over it.
#ifndef ONESTEP_COMPILER_IR_ATTRS_H_
#define ONESTEP_COMPILER_IR_ATTRS_H_

#include <cstdint>
#include <string>
#include <variant>

#include "kernels/activation.h"
#include "runtime/base/types.h"

namespace onestep {

enum class Loss : uint8_t { kSoftmaxXent, kMse };
// What a fused op does with the bias gradient of the gradient it makes.
enum class BiasGrad : uint8_t { kNone, kGrad, kUpdate };

struct NoAttrs {
  template <typename V>
  void Visit(V&&) {}
  friend bool operator==(const NoAttrs&, const NoAttrs&) = default;
};

// Input and Param: the name is printed as the value (%w1), not as a field.
struct NameAttrs {
  std::string name;
  template <typename V>
  void Visit(V&&) {}
  friend bool operator==(const NameAttrs&, const NameAttrs&) = default;
};

struct ConstantAttrs {
  float value = 0;
  template <typename V>
  void Visit(V&& v) {
    v("value", value);
  }
  friend bool operator==(const ConstantAttrs&, const ConstantAttrs&) = default;
};

struct CastAttrs {
  DType to = DType::kF32;
  template <typename V>
  void Visit(V&& v) {
    v("to", to);
  }
  friend bool operator==(const CastAttrs&, const CastAttrs&) = default;
};

struct OneHotAttrs {
  int64_t classes = 0;
  template <typename V>
  void Visit(V&& v) {
    v("classes", classes);
  }
  friend bool operator==(const OneHotAttrs&, const OneHotAttrs&) = default;
};

struct RowsAttrs {
  int64_t rows = 0;
  template <typename V>
  void Visit(V&& v) {
    v("rows", rows);
  }
  friend bool operator==(const RowsAttrs&, const RowsAttrs&) = default;
};

// A mean over the batch. `rows` is how many the batch has when the op is given
// a part of them, so that the parts add up; 0: it is given all.
struct MeanAttrs {
  int64_t rows = 0;
  template <typename V>
  void Visit(V&& v) {
    v("rows", rows);
  }
  friend bool operator==(const MeanAttrs&, const MeanAttrs&) = default;
};

struct ModelsAttrs {
  int64_t models = 0;
  template <typename V>
  void Visit(V&& v) {
    v("models", models);
  }
  friend bool operator==(const ModelsAttrs&, const ModelsAttrs&) = default;
};

struct ScaleAttrs {
  float alpha = 1;
  template <typename V>
  void Visit(V&& v) {
    v("alpha", alpha);
  }
  friend bool operator==(const ScaleAttrs&, const ScaleAttrs&) = default;
};

struct MatMulAttrs {
  bool trans_a = false;
  bool trans_b = false;
  bool bias = false;
  bool accumulate = false;
  Activation activation = Activation::kNone;
  template <typename V>
  void Visit(V&& v) {
    v("trans_a", trans_a);
    v("trans_b", trans_b);
    v("bias", bias);
    v("accumulate", accumulate);
    v("activation", activation);
  }
  bool has_epilogue() const {
    return bias || accumulate || activation != Activation::kNone;
  }
  friend bool operator==(const MatMulAttrs&, const MatMulAttrs&) = default;
};

struct BlockMatMulAttrs {
  int64_t blocks = 1;
  bool trans_a = false;
  bool trans_b = false;
  template <typename V>
  void Visit(V&& v) {
    v("blocks", blocks);
    v("trans_a", trans_a);
    v("trans_b", trans_b);
  }
  friend bool operator==(const BlockMatMulAttrs&,
                         const BlockMatMulAttrs&) = default;
};

// So many columns, the first, have the label 1; 0 where labels are given.
struct PositivesAttrs {
  int64_t positives = 0;
  template <typename V>
  void Visit(V&& v) {
    v("positives", positives);
  }
  friend bool operator==(const PositivesAttrs&,
                         const PositivesAttrs&) = default;
};

// The elements [begin, begin + size) along `axis`.
struct SliceAttrs {
  int64_t axis = 0;
  int64_t begin = 0;
  int64_t size = 0;
  template <typename V>
  void Visit(V&& v) {
    v("axis", axis);
    v("begin", begin);
    v("size", size);
  }
  friend bool operator==(const SliceAttrs&, const SliceAttrs&) = default;
};

// Exchange `index` of a program of `workers`, at its `barrier`: those of one
// barrier stand together. Each gives its x: a term of the
// sum when `from` is -1, else its range of axis `from`, which is `full` long.
// Each gets the whole value when `to` is -1, else [begin, begin + size) of its
// axis `to`.
struct ExchangeAttrs {
  int64_t index = 0;
  int64_t barrier = 0;
  int64_t workers = 0;
  int64_t from = -1;
  int64_t to = -1;
  int64_t full = 0;
  int64_t begin = 0;
  int64_t size = 0;
  template <typename V>
  void Visit(V&& v) {
    v("index", index);
    v("barrier", barrier);
    v("workers", workers);
    v("from", from);
    v("to", to);
    v("full", full);
    v("begin", begin);
    v("size", size);
  }
  friend bool operator==(const ExchangeAttrs&, const ExchangeAttrs&) = default;
};

struct SgdAttrs {
  float weight_decay = 0;
  template <typename V>
  void Visit(V&& v) {
    v("weight_decay", weight_decay);
  }
  friend bool operator==(const SgdAttrs&, const SgdAttrs&) = default;
};

struct MomentumAttrs {
  float momentum = 0.9f;
  bool nesterov = false;
  float weight_decay = 0;
  template <typename V>
  void Visit(V&& v) {
    v("momentum", momentum);
    v("nesterov", nesterov);
    v("weight_decay", weight_decay);
  }
  friend bool operator==(const MomentumAttrs&, const MomentumAttrs&) = default;
};

// Adam (Kingma and Ba, 2015, algorithm 1) with L2 decay; `decoupled` is AdamW
// (Loshchilov and Hutter, 2019): w' = w - lr weight_decay w - lr mhat/(..).
struct AdamAttrs {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0;
  bool decoupled = false;
  template <typename V>
  void Visit(V&& v) {
    v("beta1", beta1);
    v("beta2", beta2);
    v("epsilon", epsilon);
    v("weight_decay", weight_decay);
    v("decoupled", decoupled);
  }
  friend bool operator==(const AdamAttrs&, const AdamAttrs&) = default;
};

struct LossGradAttrs {
  Loss loss = Loss::kSoftmaxXent;
  bool gather = false;
  bool scaled = false;
  BiasGrad bias = BiasGrad::kNone;
  int64_t rows = 0;  // as of MeanAttrs
  template <typename V>
  void Visit(V&& v) {
    v("loss", loss);
    v("gather", gather);
    v("scaled", scaled);
    v("bias", bias);
    v("rows", rows);
  }
  friend bool operator==(const LossGradAttrs&, const LossGradAttrs&) = default;
};

struct ActivationGradAttrs {
  Activation activation = Activation::kNone;
  BiasGrad bias = BiasGrad::kNone;
  template <typename V>
  void Visit(V&& v) {
    v("activation", activation);
    v("bias", bias);
  }
  friend bool operator==(const ActivationGradAttrs&,
                         const ActivationGradAttrs&) = default;
};

struct GatherSparseAttrs {
  float alpha = 1;
  int64_t nonzeros = 0;  // of the table, for the cost; 0: not known
  template <typename V>
  void Visit(V&& v) {
    v("alpha", alpha);
    v("nonzeros", nonzeros);
  }
  friend bool operator==(const GatherSparseAttrs&,
                         const GatherSparseAttrs&) = default;
};

struct SparseMatMulAttrs {
  bool bias = false;
  Activation activation = Activation::kNone;
  template <typename V>
  void Visit(V&& v) {
    v("bias", bias);
    v("activation", activation);
  }
  friend bool operator==(const SparseMatMulAttrs&,
                         const SparseMatMulAttrs&) = default;
};

struct SparseOuterAttrs {
  int64_t rows = 0;
  bool accumulate = false;
  template <typename V>
  void Visit(V&& v) {
    v("rows", rows);
    v("accumulate", accumulate);
  }
  friend bool operator==(const SparseOuterAttrs&,
                         const SparseOuterAttrs&) = default;
};

using Attrs =
    std::variant<NoAttrs, NameAttrs, ConstantAttrs, CastAttrs, OneHotAttrs,
                 RowsAttrs, MeanAttrs, ScaleAttrs, MatMulAttrs, SgdAttrs,
                 MomentumAttrs, AdamAttrs, LossGradAttrs, ActivationGradAttrs,
                 SliceAttrs, ExchangeAttrs, GatherSparseAttrs,
                 SparseMatMulAttrs, SparseOuterAttrs, ModelsAttrs,
                 BlockMatMulAttrs, PositivesAttrs>;

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_ATTRS_H_
