// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/ops/placement.h"

#include "absl/strings/str_cat.h"
#include "compiler/ir/ops/rules.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

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

// ---- broadcast_models -------------------------------------------------------

absl::StatusOr<Types> InferBroadcastModels(const Types& in,
                                           const Attrs& attrs) {
  const int64_t models = std::get<ModelsAttrs>(attrs).models;
  if (models < 1) {
    return Wrong(OpKind::kBroadcastModels, "models >= 1",
                 absl::StrCat("models=", models));
  }
  ASSIGN_OR_RETURN(Types types, InferUnary("broadcast_models", in));
  types[0].models = models;
  return types;
}

// ---- slice ------------------------------------------------------------------

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

// Only the part is read.
OpCost CostSlice(const Node& node) { return {0, 2 * ResultBytes(node)}; }

// The axis it cuts stays whole.
Strategies PartitionSlice(const Node& node) {
  const auto& attrs = node.as<SliceAttrs>();
  Strategies list = OnlyReplicated(node);
  if (node.types[0].rank() == 2) {
    list.push_back(AllAt(node, attrs.axis == 0 ? S1 : S0));
  }
  if (node.types[0].dtype == DType::kF32) list.push_back(AllAt(node, P));
  return list;
}

// ---- exchange ---------------------------------------------------------------

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
    const int64_t local = y.dims[exchange.from], others = exchange.workers - 1;
    if (exchange.full < local || exchange.full - local < others ||
        (others == 0 && exchange.full != local)) {
      return Wrong(OpKind::kExchange,
                   absl::StrCat("full of ", exchange.workers, " ranges, one ",
                                local, " long"),
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

// Of one worker: the result's elements are read where they lie, those of a sum
// at every worker.
OpCost CostExchange(const Node& node) {
  const auto& attrs = node.as<ExchangeAttrs>();
  const double terms =
      attrs.from == -1 ? static_cast<double>(attrs.workers) : 1;
  return {(terms - 1) * Elements(node.types[0]),
          (terms + 1) * ResultBytes(node)};
}

}  // namespace

const OpRules kBroadcastModelsRules = {
    .infer = InferBroadcastModels,
    .grad = NotDifferentiated,
    .cost = NoFlops,
    .batch = AllShared,
    .partition = SplitAlikeOrPartial,
    .alias = NeverInPlace,
};

const OpRules kSliceRules = {
    .infer = InferSlice,
    .grad = NotDifferentiated,
    .cost = CostSlice,
    .batch = AllPerModel,
    .partition = PartitionSlice,
    .alias = NeverInPlace,
};

// Made by the partition, and not partitioned again. Models need no exchange.
const OpRules kExchangeRules = {
    .infer = InferExchange,
    .grad = NotDifferentiated,
    .cost = CostExchange,
    .batch = AllShared,
    .partition = OnlyReplicated,
    .alias = NeverInPlace,
};

}  // namespace onestep
