// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/placement.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/graph.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

std::string Join(const std::vector<Placement>& placements) {
  return absl::StrJoin(placements, ", ", [](std::string* out, Placement p) {
    out->append(p.ToString());
  });
}

}  // namespace

Range RangeOf(int64_t size, int workers, int worker) {
  return {size * worker / workers, size * (worker + 1) / workers};
}

AxisRuns RunsOf(const TensorType& type, int64_t axis, Range range) {
  std::vector<int64_t> dims = type.dims;
  dims.push_back(std::max<int64_t>(1, type.models));
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < std::ssize(dims); ++d) {
    if (d < axis) outer *= dims[d];
    if (d > axis) inner *= dims[d];
  }
  return {outer, range.size() * inner, dims[axis] * inner, range.begin * inner};
}

AxisRuns AllOf(const TensorType& type) {
  const int64_t n = type.num_elements() * std::max<int64_t>(1, type.models);
  return {1, n, n, 0};
}

std::string Placement::ToString() const {
  switch (kind) {
    case kReplicated:
      return "replicated";
    case kSplit:
      return absl::StrCat("split(", axis, ")");
    case kPartial:
      return "partial";
    case kModels:
      return "models";
  }
  CHECK(false);
}

std::string Strategy::ToString() const {
  return absl::StrCat("(", Join(operands), ") -> ", Join(results));
}

Placement ByModels(const TensorType& type) {
  return type.models > 0 ? Placement::Models() : Placement::Replicated();
}

Strategy ByModels(const Node& node) {
  Strategy strategy;
  for (const Value& v : node.operands) {
    strategy.operands.push_back(ByModels(v.type()));
  }
  for (const TensorType& t : node.types) {
    strategy.results.push_back(ByModels(t));
  }
  return strategy;
}

Attrs LocalAttrs(const Node& node, const Strategy& strategy,
                 const std::vector<TensorType>& local_results) {
  CHECK(local_results.size() == node.types.size());
  CHECK(local_results[0].rank() == node.types[0].rank());
  Attrs attrs = node.attrs;
  if (auto* broadcast = std::get_if<RowsAttrs>(&attrs)) {
    broadcast->rows = local_results[0].dims[0];
  }
  if (auto* broadcast = std::get_if<ModelsAttrs>(&attrs)) {
    broadcast->models = local_results[0].models;
  }
  if (!strategy.operands.empty() && strategy.operands[0].IsSplit(0)) {
    if (auto* mean = std::get_if<MeanAttrs>(&attrs)) {
      mean->rows = BatchRows(node);
    }
    if (auto* loss = std::get_if<LossGradAttrs>(&attrs)) {
      loss->rows = BatchRows(node);
    }
  }
  return attrs;
}

}  // namespace onestep
