// SPDX-License-Identifier: Apache-2.0
// Row tiles are workers one after the other: the rules are the same, split
// along the rows of the batch, and what is partial is summed up.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/passes/partition.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

using Key = std::pair<const Node*, int>;
Key KeyOf(Value v) { return {v.node, v.index}; }

// How a value is spread over the tiles.
enum class Part : uint8_t {
  kWhole,  // the same for all
  kIndex,  // whole, and read row by row: what the gathers look up
  kRows,   // each tile has its rows
  kSum,    // each tile adds to it
};

// Whether an op of these attributes can add to an operand, and now does.
bool SetAccumulate(Attrs& attrs) {
  bool* const accumulate = AccumulateOf(attrs);
  return accumulate != nullptr && (*accumulate = true);
}

class Tiler {
 public:
  Tiler(const Graph& graph, int64_t tile_rows)
      : graph_(graph), tile_rows_(tile_rows) {}

  absl::Status Analyse() {
    for (const auto& node : graph_.nodes()) {
      const std::optional<RowLookup> lookup = LookupOf(*node);
      if (!lookup) continue;
      const Value index = node->operands[lookup->indices];
      part_[KeyOf(index)] = Part::kIndex;
      rows_ = index.type().dims[0];
    }
    if (rows_ <= tile_rows_) {
      return absl::UnimplementedError(absl::StrCat(
          "tile-rows: want more than ", tile_rows_, " rows, got ", rows_));
    }
    tiles_ = (rows_ + tile_rows_ - 1) / tile_rows_;
    for (const auto& node : graph_.nodes()) RETURN_IF_ERROR(Place(*node));
    for (const Output& out : graph_.outputs()) {
      if (PartOf(out.value) != Part::kRows) continue;
      return absl::UnimplementedError(absl::StrCat(
          "tile-rows: output ", out.name, " is wanted for all rows"));
    }
    return absl::OkStatus();
  }

  Graph Build() {
    EmitWhole(/*late=*/false);
    for (tile_ = 0; tile_ < tiles_; ++tile_) {
      rows_of_tile_.clear();
      for (const auto& node : graph_.nodes()) {
        if (strategy_.count(node.get()) > 0) EmitTile(*node);
      }
    }
    EmitWhole(/*late=*/true);
    for (const Output& out : graph_.outputs()) {
      const Value value = whole_.at(KeyOf(out.value));
      if (out.kind == Output::kResult) {
        out_.AddResult(out.name, value);
      } else {
        out_.AddUpdate(out_.FindLeaf(out.name)->result(), value);
      }
    }
    return std::move(out_);
  }

 private:
  Part PartOf(Value v) const {
    const auto it = part_.find(KeyOf(v));
    return it == part_.end() ? Part::kWhole : it->second;
  }

  absl::Status Place(Node& node) {
    bool rows = false, late = false;
    for (const Value& v : node.operands) {
      const Part part = PartOf(v);
      rows |= part == Part::kRows;
      late |= part == Part::kSum || late_[v.node];
    }
    // Only a gather looks its index up row by row.
    rows |= LookupOf(node).has_value();
    if (!rows) {
      late_[&node] = late;
      return absl::OkStatus();
    }
    const auto fail = [&] {
      return absl::UnimplementedError(
          absl::StrCat("tile-rows: ", node.op(), " ",
                       graph_.NameOf(node.result()), " needs all rows"));
    };
    if (late) return fail();
    if (node.kind == OpKind::kExchange) {
      // Row by row it is, unless it works along the rows.
      const ExchangeAttrs& attrs = node.as<ExchangeAttrs>();
      if (attrs.from == 0 || attrs.to == 0) return fail();
      strategy_[&node] = {{Placement::Split(0)}, {Placement::Split(0)}};
      part_[{&node, 0}] = Part::kRows;
      return absl::OkStatus();
    }
    for (const Strategy& strategy : node.def().rules.partition(node)) {
      if (!Takes(node, strategy)) continue;
      for (int r = 0; r < static_cast<int>(node.types.size()); ++r) {
        part_[{&node, r}] = strategy.results[r] == Placement::Split(0)
                                ? Part::kRows
                                : Part::kSum;
      }
      strategy_[&node] = strategy;
      return absl::OkStatus();
    }
    return fail();
  }

  bool Takes(const Node& node, const Strategy& strategy) const {
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const Value v = node.operands[k];
      const Placement& want = strategy.operands[k];
      const Part part = PartOf(v);
      const bool split = part == Part::kRows || part == Part::kIndex;
      if (v.node->kind == OpKind::kConstant) {
        if (want.kind == Placement::kPartial) return false;
      } else if (want !=
                 (split ? Placement::Split(0) : Placement::Replicated())) {
        return false;
      }
    }
    // All rows of everything is no way to cut it.
    return std::all_of(strategy.results.begin(), strategy.results.end(),
                       [](const Placement& p) {
                         return p == Placement::Split(0) ||
                                p == Placement::Partial();
                       });
  }

  void EmitWhole(bool late) {
    for (const auto& node : graph_.nodes()) {
      const bool leaf = node->def().Has(kLeaf);
      if (strategy_.count(node.get()) > 0) continue;
      if ((late_[node.get()] && !leaf) != late) continue;
      out_.set_phase(node->phase);
      Node* twin = nullptr;
      if (node->kind == OpKind::kInput) {
        twin = out_.AddInput(node->name(), node->types[0]).node;
      } else if (node->kind == OpKind::kParam) {
        twin = out_.AddParam(node->name(), node->types[0]).node;
      } else if (node->kind == OpKind::kConstant) {
        const float value = node->as<ConstantAttrs>().value;
        twin = out_.AddConstant(value, node->types[0]).node;
      } else {
        std::vector<Value> operands;
        for (const Value& v : node->operands) {
          operands.push_back(whole_.at(KeyOf(v)));
        }
        Attrs attrs = node->attrs;
        SetBarrier(attrs, late ? tiles_ + 1 : tiles_);
        twin = out_.Add(node->kind, std::move(operands), attrs).node;
        twin->fused_from = node->fused_from;
      }
      for (int r = 0; r < static_cast<int>(node->types.size()); ++r) {
        whole_[{node.get(), r}] = twin->result(r);
      }
    }
  }

  // Every tile waits for its own, as does what is before and after them all.
  void SetBarrier(Attrs& attrs, int64_t part) const {
    if (auto* exchange = std::get_if<ExchangeAttrs>(&attrs)) {
      exchange->barrier = exchange->barrier * (tiles_ + 2) + part;
    }
  }

  Range TileRange() const {
    const int64_t begin = tile_ * tile_rows_;
    return {begin, std::min(begin + tile_rows_, rows_)};
  }

  // The tile's part of an operand that `want` asks for.
  Value Operand(Value v, const Placement& want) {
    if (want == Placement::Replicated()) return whole_.at(KeyOf(v));
    const auto [it, missing] = rows_of_tile_.try_emplace(KeyOf(v));
    if (!missing) return it->second;
    const Range range = TileRange();
    if (v.node->kind == OpKind::kConstant) {
      TensorType type = v.type();
      type.dims[want.axis] = range.size();
      it->second =
          out_.AddConstant(v.node->as<ConstantAttrs>().value, std::move(type));
    } else {
      it->second = out_.Add(OpKind::kSlice, {whole_.at(KeyOf(v))},
                            SliceAttrs{0, range.begin, range.size()});
    }
    return it->second;
  }

  void EmitTile(Node& node) {
    const Strategy& strategy = strategy_.at(&node);
    out_.set_phase(node.phase);
    std::vector<Value> operands;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      operands.push_back(Operand(node.operands[k], strategy.operands[k]));
    }
    std::vector<TensorType> types = node.types;
    for (size_t r = 0; r < types.size(); ++r) {
      if (strategy.results[r].IsSplit(0)) types[r].dims[0] = TileRange().size();
    }
    Attrs attrs = node.attrs;
    if (node.kind != OpKind::kExchange) {
      attrs = LocalAttrs(node, strategy, types);
    }
    SetBarrier(attrs, tile_);
    const bool adds_up = tile_ > 0 && PartOf(node.result()) == Part::kSum &&
                         SetAccumulate(attrs);
    if (adds_up) operands.push_back(whole_.at({&node, 0}));
    Node* const twin =
        out_.Add(node.kind, std::move(operands), std::move(attrs)).node;
    twin->fused_from = node.fused_from;
    for (int r = 0; r < static_cast<int>(node.types.size()); ++r) {
      const Value result = twin->result(r);
      if (PartOf(node.result(r)) == Part::kRows) {
        rows_of_tile_[{&node, r}] = result;
        continue;
      }
      Value& sum = whole_[{&node, r}];
      sum = tile_ == 0 || adds_up ? result
                                  : out_.Add(OpKind::kAdd, {sum, result});
    }
  }

  const Graph& graph_;
  const int64_t tile_rows_;
  int64_t rows_ = 0, tiles_ = 0;
  std::map<Key, Part> part_;
  std::map<const Node*, bool> late_;          // after the last tile
  std::map<const Node*, Strategy> strategy_;  // of what is done per tile
  Graph out_;
  int64_t tile_ = 0;
  std::map<Key, Value> whole_;         // in out_; sums as they grow
  std::map<Key, Value> rows_of_tile_;  // in out_
};

}  // namespace

absl::Status TileRows(Graph& graph, int64_t tile_rows) {
  Tiler tiler(graph, tile_rows);
  RETURN_IF_ERROR(tiler.Analyse());
  graph = tiler.Build();
  return absl::OkStatus();
}

}  // namespace onestep
