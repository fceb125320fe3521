// SPDX-License-Identifier: Apache-2.0
// Shape rules of the ops of rows of embedding tables, as in op_infer.cc.
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/infer_helpers.h"
#include "compiler/ir/op_rules.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// z f32[B,C], mask f32[B], weights f32[G,C], then labels alike if any.
absl::Status CheckPairs(OpKind kind, int64_t positives, const Types& in) {
  const bool labels = in.size() > 3;
  const bool fit =
      IsMatrix(in[0]) && IsMatrix(in[2]) && in[1] == F32({in[0].dims[0]}) &&
      in[2].dims[1] == in[0].dims[1] && in[0].dims[0] % in[2].dims[0] == 0 &&
      (!labels || in[3] == in[2]);
  if (!fit) {
    return Wrong(kind,
                 "z f32[B,C], mask f32[B], weights f32[G,C][, y f32[G,C]], B a "
                 "multiple of G",
                 in);
  }
  const int64_t most = labels ? 0 : in[0].dims[1];
  if (positives >= 0 && positives <= most) return absl::OkStatus();
  return Wrong(kind,
               labels ? "positives 0 beside labels"
                      : absl::StrCat("positives 0 to ", most),
               absl::StrCat("positives=", positives));
}

// (in, out, contexts, `per_context` operands, outputs, weights[, labels], lr).
absl::StatusOr<Types> InferWindow(OpKind kind, const std::string& want,
                                  const Types& in, const Types& per_context,
                                  bool labels, int64_t positives) {
  const size_t outputs = 3 + per_context.size();
  const bool leaves = IsMatrix(in[0]) && IsMatrix(in[1]) &&
                      in[0].dims[1] == in[1].dims[1] &&
                      IsVector(in[outputs], DType::kI32);
  Types types;
  if (leaves) {
    types = {in[0], in[1], I32({in[2].num_elements()})};
    types.insert(types.end(), per_context.begin(), per_context.end());
    types.push_back(in[outputs]);
    const TensorType row = F32({1, in[outputs].dims[0]});
    types.insert(types.end(), labels ? 2 : 1, row);
    types.push_back(F32({}));
  }
  if (in != types) return Wrong(kind, want, in);
  const int64_t most = labels ? 0 : in[outputs].dims[0];
  if (positives < 0 || positives > most) {
    return Wrong(kind, absl::StrCat("positives 0 to ", most),
                 absl::StrCat("positives=", positives));
  }
  return Types{F32({}), in[0], in[1]};
}

}  // namespace

absl::StatusOr<Types> InferScatterAdd(const Types& in, const Attrs&) {
  const TensorType& table = in[0];
  TensorType rows = table;
  if (IsVector(in[1], DType::kI32) && table.rank() > 0) {
    rows.dims[0] = in[1].dims[0];
  }
  if (!(IsVector(table, DType::kF32) || IsMatrix(table)) ||
      !IsVector(in[1], DType::kI32) || in[2] != rows) {
    return Wrong(OpKind::kScatterAdd,
                 "table f32[N] or f32[N,C], indices i32[B], x f32[B] or "
                 "f32[B,C]",
                 in);
  }
  return Types{table};
}

absl::StatusOr<Types> InferBlockMatMul(const Types& in, const Attrs& attrs) {
  const auto& matmul = std::get<BlockMatMulAttrs>(attrs);
  const int64_t blocks = matmul.blocks;
  if (blocks < 1) {
    return Wrong(OpKind::kBlockMatMul, "blocks >= 1",
                 absl::StrCat("blocks=", blocks));
  }
  if (IsMatrix(in[0]) && IsMatrix(in[1]) && in[0].dims[0] % blocks == 0 &&
      in[1].dims[0] % blocks == 0) {
    int64_t m = in[0].dims[0] / blocks, k = in[0].dims[1];
    int64_t b_k = in[1].dims[0] / blocks, n = in[1].dims[1];
    if (matmul.trans_a) std::swap(m, k);
    if (matmul.trans_b) std::swap(b_k, n);
    if (k == b_k) return Types{F32({blocks * m, n})};
  }
  return Wrong(OpKind::kBlockMatMul,
               absl::StrCat(blocks, " blocks of ",
                            matmul.trans_a ? "a[k,m] x " : "a[m,k] x ",
                            matmul.trans_b ? "b[n,k]" : "b[k,n]"),
               in);
}

absl::StatusOr<Types> InferSigmoidBce(const Types& in, const Attrs& attrs) {
  RETURN_IF_ERROR(CheckPairs(OpKind::kSigmoidBce,
                             std::get<PositivesAttrs>(attrs).positives, in));
  return Types{F32({})};
}

absl::StatusOr<Types> InferSigmoidBceGrad(const Types& in, const Attrs& attrs) {
  RETURN_IF_ERROR(CheckPairs(OpKind::kSigmoidBceGrad,
                             std::get<PositivesAttrs>(attrs).positives, in));
  return Types{in[0]};
}

absl::StatusOr<Types> InferSgnsWindow(const Types& in, const Attrs& attrs) {
  return InferWindow(OpKind::kSgnsWindow,
                     "in f32[V,D], out f32[U,D], contexts i32[C], mask f32[C], "
                     "outputs i32[N], weights f32[1,N], lr f32[]",
                     in, {F32({in[2].num_elements()})}, /*labels=*/false,
                     std::get<PositivesAttrs>(attrs).positives);
}

absl::StatusOr<Types> InferHsWindow(const Types& in, const Attrs&) {
  return InferWindow(OpKind::kHsWindow,
                     "in f32[V,D], out f32[U,D], contexts i32[C], mask f32[C], "
                     "outputs i32[N], weights, y f32[1,N], lr f32[]",
                     in, {F32({in[2].num_elements()})}, /*labels=*/true, 0);
}

absl::StatusOr<Types> InferCbowWindow(const Types& in, const Attrs& attrs) {
  const TensorType row = F32({1, in[2].num_elements()});
  return InferWindow(
      OpKind::kCbowWindow,
      "in f32[V,D], out f32[U,D], contexts i32[C], mean, spread "
      "f32[1,C], outputs i32[N], weights[, y] f32[1,N], lr f32[]",
      in, {row, row}, /*labels=*/in.size() == 9,
      std::get<PositivesAttrs>(attrs).positives);
}

}  // namespace onestep
