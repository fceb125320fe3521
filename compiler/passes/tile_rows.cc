// SPDX-License-Identifier: Apache-2.0
// Tiles of rows act like workers that run in sequence. The pass uses the same
// partition rules: values are split along the rows of the batch, and partial
// values are summed over the tiles.
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

// The relation of a value to the tiles.
enum class Tiling : uint8_t {
  kWhole,  // the same for all tiles
  kIndex,  // whole, but read row by row: the indices of a gather
  kRows,   // each tile has its own rows
  kSum,    // each tile adds to it
};

// Sets the `accumulate` attribute; returns false when the op has none.
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
      tiling_[KeyOf(index)] = Tiling::kIndex;
      rows_ = index.type().dims[0];
    }
    if (rows_ <= tile_rows_) {
      return absl::UnimplementedError(absl::StrCat(
          "tile-rows: want more than ", tile_rows_, " rows, got ", rows_));
    }
    tiles_ = (rows_ + tile_rows_ - 1) / tile_rows_;
    for (const auto& node : graph_.nodes()) RETURN_IF_ERROR(Place(*node));
    for (const Output& out : graph_.outputs()) {
      if (TilingOf(out.value) != Tiling::kRows) continue;
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
  Tiling TilingOf(Value v) const {
    const auto it = tiling_.find(KeyOf(v));
    return it == tiling_.end() ? Tiling::kWhole : it->second;
  }

  absl::Status Place(Node& node) {
    bool rows = false, late = false;
    for (const Value& v : node.operands) {
      const Tiling tiling = TilingOf(v);
      rows |= tiling == Tiling::kRows;
      late |= tiling == Tiling::kSum || late_[v.node];
    }
    // An index is read row by row only by a gather.
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
      // An exchange is rowwise unless it works along the rows.
      const ExchangeAttrs& attrs = node.as<ExchangeAttrs>();
      if (attrs.from == 0 || attrs.to == 0) return fail();
      strategy_[&node] = {{Placement::Split(0)}, {Placement::Split(0)}};
      tiling_[{&node, 0}] = Tiling::kRows;
      return absl::OkStatus();
    }
    for (const Strategy& strategy : node.def().rules.partition(node)) {
      if (!Takes(node, strategy)) continue;
      for (int r = 0; r < static_cast<int>(node.types.size()); ++r) {
        tiling_[{&node, r}] = strategy.results[r] == Placement::Split(0)
                                  ? Tiling::kRows
                                  : Tiling::kSum;
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
      const Tiling tiling = TilingOf(v);
      const bool split = tiling == Tiling::kRows || tiling == Tiling::kIndex;
      if (v.node->kind == OpKind::kConstant) {
        if (want.kind == Placement::kPartial) return false;
      } else if (want !=
                 (split ? Placement::Split(0) : Placement::Replicated())) {
        return false;
      }
    }
    // A strategy with a replicated result would compute all rows in each tile.
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

  // Gives each tile a separate barrier, and the nodes before and after all
  // tiles one too: `stage` is the tile's index, or tiles_, or tiles_ + 1.
  void SetBarrier(Attrs& attrs, int64_t stage) const {
    if (auto* exchange = std::get_if<ExchangeAttrs>(&attrs)) {
      exchange->barrier = exchange->barrier * (tiles_ + 2) + stage;
    }
  }

  Range TileRange() const {
    const int64_t begin = tile_ * tile_rows_;
    return {begin, std::min(begin + tile_rows_, rows_)};
  }

  // The operand of the current tile in the placement `want`.
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
    const bool adds_up = tile_ > 0 && TilingOf(node.result()) == Tiling::kSum &&
                         SetAccumulate(attrs);
    if (adds_up) operands.push_back(whole_.at({&node, 0}));
    Node* const twin =
        out_.Add(node.kind, std::move(operands), std::move(attrs)).node;
    twin->fused_from = node.fused_from;
    for (int r = 0; r < static_cast<int>(node.types.size()); ++r) {
      const Value result = twin->result(r);
      if (TilingOf(node.result(r)) == Tiling::kRows) {
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
  std::map<Key, Tiling> tiling_;
  std::map<const Node*, bool> late_;          // runs after the last tile
  std::map<const Node*, Strategy> strategy_;  // of the nodes of each tile
  Graph out_;
  int64_t tile_ = 0;
  std::map<Key, Value> whole_;         // in out_; sums of the tiles so far
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
