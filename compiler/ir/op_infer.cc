// SPDX-License-Identifier: Apache-2.0
// Shape and dtype rules. That the number of operands is within the bounds of
// ops.def is checked before; where it depends on the attributes, here.
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/infer_helpers.h"
#include "compiler/ir/op.h"
#include "compiler/ir/op_rules.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// One f32 tensor, of any shape, gives its own type.
absl::StatusOr<Types> InferUnary(OpKind kind, const Types& in) {
  if (in[0].dtype != DType::kF32) return Wrong(kind, "x f32", in);
  return Types{in[0]};
}

// Two f32 tensors of one shape, whatever it is, give that.
absl::StatusOr<Types> InferBinary(OpKind kind, const std::string& want,
                                  const Types& in) {
  if (in[0].dtype != DType::kF32 || in[0] != in[1]) {
    return Wrong(kind, absl::StrCat(want, " f32 of one shape"), in);
  }
  return Types{in[0]};
}

absl::StatusOr<Types> InferGradOf(OpKind kind, const Types& in) {
  return InferBinary(kind, kind == OpKind::kGeluGrad ? "x, dy" : "y, dy", in);
}

// One value per row of `name` f32[B,C].
absl::Status CheckLabels(OpKind kind, const std::string& name,
                         const Types& in) {
  if (!IsMatrix(in[0]) || in[1] != I32({in[0].dims[0]})) {
    return Wrong(kind, absl::StrCat(name, " f32[B,C], labels i32[B]"), in);
  }
  return absl::OkStatus();
}

// The batch of a mean has the rows of `part` and maybe more.
absl::Status CheckBatchRows(OpKind kind, int64_t rows, const TensorType& part) {
  if (rows == 0 || (part.rank() > 0 && rows >= part.dims[0])) {
    return absl::OkStatus();
  }
  return Wrong(kind,
               part.rank() > 0 ? absl::StrCat("rows 0 or >= ", part.dims[0])
                               : "rows 0 with a scalar",
               absl::StrCat("rows=", rows));
}

// (w, dw, `states` tensors of w's shape, then scalars f32[]) -> w and states.
// The last scalars are `hyper` ones or none: `decay` is then to be 0.
absl::StatusOr<Types> InferUpdate(OpKind kind, const std::string& want,
                                  const Types& in, int states, int hyper,
                                  float decay) {
  const int scalars = static_cast<int>(in.size()) - 2 - states;
  const int least = GetOpDef(kind).min_operands - 2 - states;
  Types types(2 + states, in[0]);
  types.insert(types.end(), scalars, F32({}));
  if (in[0].dtype != DType::kF32 || in != types ||
      (scalars != least && scalars != least + hyper)) {
    return Wrong(kind, want, in);
  }
  if (scalars > least && decay != 0) {
    return Wrong(kind, "weight_decay 0 beside the operand",
                 absl::StrCat("weight_decay=", decay));
  }
  return Types(1 + states, in[0]);
}

absl::Status CheckAxis(OpKind kind, const char* name, int64_t axis,
                       const TensorType& type) {
  if (axis >= 0 && axis < type.rank()) return absl::OkStatus();
  return Wrong(kind, absl::StrCat(name, " of ", type.ToString()),
               absl::StrCat(name, "=", axis));
}

// `type` becomes its part [begin, begin + size) along `axis`.
absl::Status CutAxis(OpKind kind, const char* name, int64_t axis, int64_t begin,
                     int64_t size, TensorType& type) {
  RETURN_IF_ERROR(CheckAxis(kind, name, axis, type));
  const int64_t dim = type.dims[axis];
  if (begin < 0 || size < 1 || begin > dim || size > dim - begin) {
    return Wrong(kind, absl::StrCat("a range within ", dim),
                 absl::StrCat("begin=", begin, ", size=", size));
  }
  type.dims[axis] = size;
  return absl::OkStatus();
}

absl::Status TypeIsGiven(OpKind kind) {
  return absl::InternalError(
      absl::StrCat(GetOpDef(kind).name, ": its type is given, not inferred"));
}

}  // namespace

absl::StatusOr<Types> InferInput(const Types&, const Attrs&) {
  return TypeIsGiven(OpKind::kInput);
}

absl::StatusOr<Types> InferParam(const Types&, const Attrs&) {
  return TypeIsGiven(OpKind::kParam);
}

absl::StatusOr<Types> InferConstant(const Types&, const Attrs&) {
  return TypeIsGiven(OpKind::kConstant);
}

absl::StatusOr<Types> InferGatherRows(const Types& in, const Attrs&) {
  const TensorType& table = in[0];
  if ((table.rank() != 1 && table.rank() != 2) ||
      !IsVector(in[1], DType::kI32)) {
    return Wrong(OpKind::kGatherRows, "table [N] or [N,C], indices i32[B]", in);
  }
  TensorType rows = table;
  rows.dims[0] = in[1].dims[0];
  return Types{rows};
}

absl::StatusOr<Types> InferCast(const Types& in, const Attrs& attrs) {
  const DType to = std::get<CastAttrs>(attrs).to;
  if (to != DType::kF32) {
    return Wrong(OpKind::kCast, "to=f32", absl::StrCat("to=", DTypeName(to)));
  }
  return Types{F32(in[0].dims)};
}

absl::StatusOr<Types> InferOneHot(const Types& in, const Attrs& attrs) {
  const int64_t classes = std::get<OneHotAttrs>(attrs).classes;
  if (classes < 1) {
    return Wrong(OpKind::kOneHot, "classes >= 1",
                 absl::StrCat("classes=", classes));
  }
  if (!IsVector(in[0], DType::kI32)) {
    return Wrong(OpKind::kOneHot, "labels i32[B]", in);
  }
  return Types{F32({in[0].dims[0], classes})};
}

absl::StatusOr<Types> InferScale(const Types& in, const Attrs&) {
  return InferUnary(OpKind::kScale, in);
}

absl::StatusOr<Types> InferMulScalar(const Types& in, const Attrs&) {
  if (in[0].dtype != DType::kF32 || in[1] != F32({})) {
    return Wrong(OpKind::kMulScalar, "x f32, s f32[]", in);
  }
  return Types{in[0]};
}

absl::StatusOr<Types> InferAdd(const Types& in, const Attrs&) {
  return InferBinary(OpKind::kAdd, "a, b", in);
}

absl::StatusOr<Types> InferMul(const Types& in, const Attrs&) {
  return InferBinary(OpKind::kMul, "a, b", in);
}

absl::StatusOr<Types> InferMatMul(const Types& in, const Attrs& attrs) {
  const auto& matmul = std::get<MatMulAttrs>(attrs);
  if (matmul.accumulate &&
      (matmul.bias || matmul.activation != Activation::kNone)) {
    return Wrong(OpKind::kMatMul, "accumulate or bias and activation", "both");
  }
  if (IsMatrix(in[0]) && IsMatrix(in[1])) {
    const int64_t m = in[0].dims[matmul.trans_a ? 1 : 0];
    const int64_t k = in[0].dims[matmul.trans_a ? 0 : 1];
    const int64_t n = in[1].dims[matmul.trans_b ? 0 : 1];
    Types types = {in[0], matmul.trans_b ? F32({n, k}) : F32({k, n})};
    if (matmul.bias) types.push_back(F32({n}));
    if (matmul.accumulate) types.push_back(F32({m, n}));
    if (in == types) return Types{F32({m, n})};
  }
  std::string got = absl::StrCat(in[0].ToString(), " x ", in[1].ToString());
  for (size_t i = 2; i < in.size(); ++i) {
    absl::StrAppend(&got, " + ", in[i].ToString());
  }
  return Wrong(OpKind::kMatMul,
               absl::StrCat(matmul.trans_a ? "a[k,m] x " : "a[m,k] x ",
                            matmul.trans_b ? "b[n,k]" : "b[k,n]",
                            matmul.bias ? " + bias[n]" : "",
                            matmul.accumulate ? " + c[m,n]" : ""),
               got);
}

absl::StatusOr<Types> InferAddBias(const Types& in, const Attrs&) {
  if (!IsMatrix(in[0]) || in[1] != F32({in[0].dims[1]})) {
    return Wrong(OpKind::kAddBias, "x f32[B,C], b f32[C]", in);
  }
  return Types{in[0]};
}

absl::StatusOr<Types> InferReduceRows(const Types& in, const Attrs&) {
  if (!IsMatrix(in[0])) return Wrong(OpKind::kReduceRows, "x f32[B,C]", in);
  return Types{F32({in[0].dims[1]})};
}

absl::StatusOr<Types> InferBroadcastRows(const Types& in, const Attrs& attrs) {
  const int64_t rows = std::get<RowsAttrs>(attrs).rows;
  if (rows < 1) {
    return Wrong(OpKind::kBroadcastRows, "rows >= 1",
                 absl::StrCat("rows=", rows));
  }
  if (!IsVector(in[0], DType::kF32)) {
    return Wrong(OpKind::kBroadcastRows, "x f32[C]", in);
  }
  return Types{F32({rows, in[0].dims[0]})};
}

absl::StatusOr<Types> InferRelu(const Types& in, const Attrs&) {
  return InferUnary(OpKind::kRelu, in);
}

absl::StatusOr<Types> InferTanh(const Types& in, const Attrs&) {
  return InferUnary(OpKind::kTanh, in);
}

absl::StatusOr<Types> InferSigmoid(const Types& in, const Attrs&) {
  return InferUnary(OpKind::kSigmoid, in);
}

absl::StatusOr<Types> InferGelu(const Types& in, const Attrs&) {
  return InferUnary(OpKind::kGelu, in);
}

absl::StatusOr<Types> InferReluGrad(const Types& in, const Attrs&) {
  return InferGradOf(OpKind::kReluGrad, in);
}

absl::StatusOr<Types> InferTanhGrad(const Types& in, const Attrs&) {
  return InferGradOf(OpKind::kTanhGrad, in);
}

absl::StatusOr<Types> InferSigmoidGrad(const Types& in, const Attrs&) {
  return InferGradOf(OpKind::kSigmoidGrad, in);
}

absl::StatusOr<Types> InferGeluGrad(const Types& in, const Attrs&) {
  return InferGradOf(OpKind::kGeluGrad, in);
}

absl::StatusOr<Types> InferSoftmax(const Types& in, const Attrs&) {
  if (!IsMatrix(in[0])) return Wrong(OpKind::kSoftmax, "x f32[B,C]", in);
  return Types{in[0]};
}

absl::StatusOr<Types> InferSoftmaxGrad(const Types& in, const Attrs&) {
  if (!IsMatrix(in[0]) || in[0] != in[1]) {
    return Wrong(OpKind::kSoftmaxGrad, "y, dy f32[B,C]", in);
  }
  return Types{in[0]};
}

absl::StatusOr<Types> InferNllLoss(const Types& in, const Attrs& attrs) {
  RETURN_IF_ERROR(CheckLabels(OpKind::kNllLoss, "logits", in));
  RETURN_IF_ERROR(
      CheckBatchRows(OpKind::kNllLoss, std::get<MeanAttrs>(attrs).rows, in[0]));
  return Types{F32({})};
}

absl::StatusOr<Types> InferMinusOneHot(const Types& in, const Attrs&) {
  RETURN_IF_ERROR(CheckLabels(OpKind::kMinusOneHot, "p", in));
  return Types{in[0]};
}

absl::StatusOr<Types> InferMseLoss(const Types& in, const Attrs& attrs) {
  RETURN_IF_ERROR(InferBinary(OpKind::kMseLoss, "y, t", in).status());
  RETURN_IF_ERROR(
      CheckBatchRows(OpKind::kMseLoss, std::get<MeanAttrs>(attrs).rows, in[0]));
  return Types{F32({})};
}

absl::StatusOr<Types> InferMseGrad(const Types& in, const Attrs& attrs) {
  RETURN_IF_ERROR(
      CheckBatchRows(OpKind::kMseGrad, std::get<MeanAttrs>(attrs).rows, in[0]));
  return InferBinary(OpKind::kMseGrad, "y, t", in);
}

absl::StatusOr<Types> InferCountCorrect(const Types& in, const Attrs&) {
  RETURN_IF_ERROR(CheckLabels(OpKind::kCountCorrect, "logits", in));
  return Types{F32({})};
}

absl::StatusOr<Types> InferSgdUpdate(const Types& in, const Attrs& attrs) {
  return InferUpdate(OpKind::kSgdUpdate,
                     "w, dw f32 of one shape, lr[, weight_decay] f32[]", in,
                     /*states=*/0, /*hyper=*/1,
                     std::get<SgdAttrs>(attrs).weight_decay);
}

absl::StatusOr<Types> InferMomentumUpdate(const Types& in, const Attrs& attrs) {
  return InferUpdate(
      OpKind::kMomentumUpdate,
      "w, dw, v f32 of one shape, lr[, momentum, weight_decay] f32[]", in,
      /*states=*/1, /*hyper=*/2, std::get<MomentumAttrs>(attrs).weight_decay);
}

absl::StatusOr<Types> InferAdamUpdate(const Types& in, const Attrs& attrs) {
  return InferUpdate(
      OpKind::kAdamUpdate,
      "w, dw, m, v f32 of one shape, lr, step[, weight_decay] f32[]", in,
      /*states=*/2, /*hyper=*/1, std::get<AdamAttrs>(attrs).weight_decay);
}

absl::StatusOr<Types> InferBroadcastModels(const Types& in,
                                           const Attrs& attrs) {
  const int64_t models = std::get<ModelsAttrs>(attrs).models;
  if (models < 1) {
    return Wrong(OpKind::kBroadcastModels, "models >= 1",
                 absl::StrCat("models=", models));
  }
  ASSIGN_OR_RETURN(Types types, InferUnary(OpKind::kBroadcastModels, in));
  types[0].models = models;
  return types;
}

absl::StatusOr<Types> InferSlice(const Types& in, const Attrs& attrs) {
  const auto& slice = std::get<SliceAttrs>(attrs);
  TensorType y = in[0];
  if (y.rank() != 1 && y.rank() != 2) {
    return Wrong(OpKind::kSlice, "x [N] or [B,C]", in);
  }
  RETURN_IF_ERROR(
      CutAxis(OpKind::kSlice, "axis", slice.axis, slice.begin, slice.size, y));
  return Types{y};
}

absl::StatusOr<Types> InferExchange(const Types& in, const Attrs& attrs) {
  const auto& exchange = std::get<ExchangeAttrs>(attrs);
  TensorType y = in[0];
  if (y.dtype != DType::kF32) return Wrong(OpKind::kExchange, "x f32", in);
  if (exchange.workers < 1 || exchange.index < 0) {
    return Wrong(
        OpKind::kExchange, "workers >= 1, index >= 0",
        absl::StrCat("workers=", exchange.workers, ", index=", exchange.index));
  }
  if (exchange.from == -1) {
    if (exchange.full != 0) {
      return Wrong(OpKind::kExchange, "full=0 of a sum",
                   absl::StrCat("full=", exchange.full));
    }
  } else {
    RETURN_IF_ERROR(CheckAxis(OpKind::kExchange, "from", exchange.from, y));
    const int64_t own = y.dims[exchange.from], others = exchange.workers - 1;
    if (exchange.full < own || exchange.full - own < others ||
        (others == 0 && exchange.full != own)) {
      return Wrong(OpKind::kExchange,
                   absl::StrCat("full of ", exchange.workers, " ranges, one ",
                                own, " long"),
                   absl::StrCat("full=", exchange.full));
    }
    y.dims[exchange.from] = exchange.full;
  }
  if (exchange.to != -1) {
    RETURN_IF_ERROR(CutAxis(OpKind::kExchange, "to", exchange.to,
                            exchange.begin, exchange.size, y));
  } else if (exchange.begin != 0 || exchange.size != 0) {
    return Wrong(
        OpKind::kExchange, "begin=0, size=0 of a whole value",
        absl::StrCat("begin=", exchange.begin, ", size=", exchange.size));
  }
  return Types{y};
}

absl::StatusOr<Types> InferGatherConvert(const Types& in, const Attrs&) {
  if (!IsMatrix(in[0], DType::kU8) || !IsVector(in[1], DType::kI32)) {
    return Wrong(OpKind::kGatherConvert, "table u8[N,C], indices i32[B]", in);
  }
  return Types{F32({in[1].dims[0], in[0].dims[1]})};
}

absl::StatusOr<Types> InferLossGrad(const Types& in, const Attrs& attrs) {
  const auto& loss = std::get<LossGradAttrs>(attrs);
  const bool update = loss.bias == BiasGrad::kUpdate;
  if (IsMatrix(in[0]) && IsVector(in[1], DType::kI32)) {
    const int64_t batch = in[0].dims[0], classes = in[0].dims[1];
    Types types = {in[0]};
    if (loss.gather) types.push_back(in[1]);  // labels of any length
    types.push_back(I32({batch}));
    if (loss.scaled) types.push_back(F32({}));
    if (update) types.push_back(F32({classes}));
    if (in == types) {
      RETURN_IF_ERROR(CheckBatchRows(OpKind::kLossGrad, loss.rows, in[0]));
      Types results = {F32({}), in[0], F32({})};
      if (loss.bias != BiasGrad::kNone) results.push_back(F32({classes}));
      return results;
    }
  }
  return Wrong(
      OpKind::kLossGrad,
      absl::StrCat("logits f32[B,C], labels ",
                   loss.gather ? "i32[N], indices i32[B]" : "i32[B]",
                   loss.scaled ? ", lr f32[]" : "", update ? ", b f32[C]" : ""),
      in);
}

absl::StatusOr<Types> InferActivationGrad(const Types& in, const Attrs& attrs) {
  const auto& grad = std::get<ActivationGradAttrs>(attrs);
  const bool update = grad.bias == BiasGrad::kUpdate;
  if (grad.activation == Activation::kNone) {
    return Wrong(OpKind::kActivationGrad, "an activation", "none");
  }
  if (IsMatrix(in[0])) {
    Types types = {in[0], in[0]};
    if (update) types.push_back(F32({in[0].dims[1]}));
    if (in == types) {
      Types results = {in[0]};
      if (grad.bias != BiasGrad::kNone) {
        results.push_back(F32({in[0].dims[1]}));
      }
      return results;
    }
  }
  return Wrong(OpKind::kActivationGrad,
               absl::StrCat(ActivationGradReadsOperand(grad.activation)
                                ? "x, dy f32[B,C]"
                                : "y, dy f32[B,C]",
                            update ? ", b f32[C]" : ""),
               in);
}

absl::StatusOr<Types> InferGatherSparse(const Types& in, const Attrs&) {
  if (!IsMatrix(in[0], DType::kU8) || !IsVector(in[1], DType::kI32) ||
      in[0].dims[1] > kMaxSparseCols) {
    return Wrong(
        OpKind::kGatherSparse,
        absl::StrCat("table u8[N,K], indices i32[B], K up to ", kMaxSparseCols),
        in);
  }
  return Types{I32({in[1].dims[0], SparseWidth(in[0].dims[1])})};
}

absl::StatusOr<Types> InferSparseMatMul(const Types& in, const Attrs& attrs) {
  const bool bias = std::get<SparseMatMulAttrs>(attrs).bias;
  if (in[0].rank() == 2 && IsMatrix(in[1])) {
    Types types = {I32({in[0].dims[0], SparseWidth(in[1].dims[0])}), in[1]};
    if (bias) types.push_back(F32({in[1].dims[1]}));
    if (in == types) return Types{F32({in[0].dims[0], in[1].dims[1]})};
  }
  return Wrong(OpKind::kSparseMatMul,
               absl::StrCat("x i32[B,width of K], w f32[K,C]",
                            bias ? ", bias f32[C]" : ""),
               in);
}

absl::StatusOr<Types> InferSparseOuter(const Types& in, const Attrs& attrs) {
  const auto& outer = std::get<SparseOuterAttrs>(attrs);
  if (outer.rows < 1) {
    return Wrong(OpKind::kSparseOuter, "rows >= 1",
                 absl::StrCat("rows=", outer.rows));
  }
  if (in[0].rank() == 2 && IsMatrix(in[1])) {
    const int64_t batch = in[0].dims[0], cols = in[1].dims[1];
    const TensorType dw = F32({outer.rows, cols});
    Types types = {I32({batch, SparseWidth(outer.rows)}), F32({batch, cols})};
    if (outer.accumulate) types.push_back(dw);
    if (in == types) return Types{dw};
  }
  return Wrong(
      OpKind::kSparseOuter,
      absl::StrCat(
          "x i32[B,", SparseWidth(outer.rows), "], dz f32[B,C]",
          outer.accumulate ? absl::StrCat(", c f32[", outer.rows, ",C]") : ""),
      in);
}

}  // namespace onestep
