// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/partition.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// The cost model of the search, measured per core on Zen 5 with AVX-512. Only
// the ratios affect the choice.
constexpr double kMatMulFlopsPerUs = 250e3;
constexpr double kSparseFlopsPerUs = 130e3;  // FLOPs of the nonzeros only
constexpr double kOtherFlopsPerUs = 15e3;
constexpr double kCacheBytesPerUs = 60e3;   // from the core's private cache
constexpr double kSharedBytesPerUs = 20e3;  // written by another core
constexpr double kBarrierUs = 0.3;  // times log2 of the number of workers
constexpr double kNodeUs = 0.03;

double FlopsPerUs(const OpDef& def) {
  if (def.Has(kDenseProduct)) return kMatMulFlopsPerUs;
  return def.Has(kSparseProduct) ? kSparseFlopsPerUs : kOtherFlopsPerUs;
}

// Whether the search chooses a strategy for the node. A leaf is available in
// every placement that its first reader needs, a constant in all of them.
bool Chooses(const Node& node) {
  return !node.def().Has(kLeaf) && node.kind != OpKind::kConstant;
}

// The beam width: the number of states kept after each node.
constexpr size_t kBeam = 400;

// The placements that the search considers, as indices of bits ("forms"):
// replicated, partial, and split along one of the first kSplitAxes axes.
constexpr int kWhole = 0, kSum = 1, kAxis0 = 2;
constexpr int kSplitAxes = 2;
constexpr int kForms = kAxis0 + kSplitAxes;
int FormOf(const Placement& p) {
  switch (p.kind) {
    case Placement::kReplicated:
      return kWhole;
    case Placement::kPartial:
      return kSum;
    case Placement::kSplit:
      CHECK(p.axis < kSplitAxes);
      return kAxis0 + p.axis;
    case Placement::kModels:  // graphs with a model axis are not searched
      break;
  }
  CHECK(false);
}

// The placements in which a value is already available, and the number of
// barriers that each needs.
struct Available {
  uint8_t mask = 0;
  uint8_t home = 0;  // params only: the form between steps
  uint16_t level[kForms] = {};
  friend bool operator==(const Available&, const Available&) = default;
  bool has(int form) const { return (mask >> form & 1) != 0; }
  void Set(int form, int at) {
    mask |= 1 << form;
    level[form] = static_cast<uint16_t>(at);
  }
};

// A state of the beam search: strategies for a prefix of the nodes.
struct State {
  double us = 0;    // predicted time so far
  int level = 0;    // number of barriers so far
  int choice = -1;  // index of the last choice in records_; -1: none
  std::vector<Available> available;
};

// The choice of a strategy for a node; `before` is the index of the previous
// choice, or -1.
struct Record {
  int before, strategy;
};

// The beam search over the placements.
class Search {
 public:
  Search(const Graph& graph, int workers, int64_t rows, int64_t tiles,
         uint64_t shuffle)
      : graph_(graph),
        workers_(workers),
        rows_(rows),
        tiles_(tiles),
        shuffle_(shuffle) {
    int values = 0;
    for (const auto& node : graph.nodes()) {
      first_value_[node.get()] = values;
      values += static_cast<int>(node->types.size());
    }
    last_use_.assign(values, -1);
    for (int i = 0; i < graph.size(); ++i) {
      for (const Value& v : graph.nodes()[i]->operands) last_use_[Id(v)] = i;
    }
    for (const Output& out : graph.outputs()) {
      last_use_[Id(out.value)] = graph.size();
      if (out.kind == Output::kUpdate) {
        last_use_[Id(graph.FindLeaf(out.name)->result())] = graph.size();
      }
    }
    State start;
    start.available.resize(values);
    beam_ = {std::move(start)};
  }

  absl::Status Run() {
    for (int i = 0; i < graph_.size(); ++i) Step(i);
    std::vector<State> done;
    for (State& state : beam_) {
      if (Finish(state)) done.push_back(std::move(state));
    }
    if (done.empty()) {
      return absl::UnimplementedError(absl::StrCat(
          "dispatch single: ", stuck_ == nullptr ? "an output" : stuck_->op(),
          " cannot be spread over ", workers_, " workers"));
    }
    best_ = *std::min_element(
        done.begin(), done.end(),
        [](const State& a, const State& b) { return a.us < b.us; });
    return absl::OkStatus();
  }

  void Fill(Partition& partition) const {
    std::vector<int> chosen;  // from the last node to the first
    for (int r = best_.choice; r >= 0; r = records_[r].before) {
      chosen.push_back(records_[r].strategy);
    }
    for (const auto& node : graph_.nodes()) {
      if (node->kind == OpKind::kParam) {
        const Available& available = best_.available[Id(node->result())];
        Placement home = Placement::Replicated();
        if (available.home >= kAxis0) {
          home = Placement::Split(available.home - kAxis0);
        }
        partition.homes[node->name()] = home;
      }
      if (!Chooses(*node)) continue;
      partition.strategies[node.get()] =
          node->def().rules.partition(*node)[chosen.back()];
      chosen.pop_back();
    }
    partition.us = best_.us;
  }

 private:
  int Id(Value v) const { return first_value_.at(v.node) + v.index; }

  void Step(int i) {
    Node* const node = graph_.nodes()[i].get();
    std::vector<State> next;
    if (!Chooses(*node)) {
      next = std::move(beam_);
      if (node->kind != OpKind::kParam) {
        for (State& s : next) s.available[Id(node->result())].Set(kWhole, 0);
      }
    } else {
      const std::vector<Strategy> strategies =
          node->def().rules.partition(*node);
      for (const State& state : beam_) {
        for (int c = 0; c < static_cast<int>(strategies.size()); ++c) {
          State after = state;
          if (!Apply(*node, strategies[c], after)) continue;
          records_.push_back({state.choice, c});
          after.choice = static_cast<int>(records_.size()) - 1;
          next.push_back(std::move(after));
        }
      }
    }
    if (next.empty() && stuck_ == nullptr) stuck_ = node;
    for (State& state : next) Forget(*node, i, state);
    Prune(next);
    beam_ = std::move(next);
  }

  // Whether every split axis has at least one element for each worker. Values
  // of more axes than `slice` can cut stay whole.
  bool Fits(const std::vector<Placement>& placements,
            const std::vector<const TensorType*>& types) const {
    for (size_t i = 0; i < placements.size(); ++i) {
      const Placement& p = placements[i];
      if (p.kind != Placement::kSplit) continue;
      if (types[i]->rank() > kSplitAxes) return false;
      if (types[i]->dims[p.axis] < workers_) return false;
    }
    return true;
  }

  bool Apply(Node& node, const Strategy& strategy, State& state) {
    std::vector<const TensorType*> in, out;
    for (const Value& v : node.operands) in.push_back(&v.type());
    for (const TensorType& t : node.types) out.push_back(&t);
    if (!Fits(strategy.operands, in) || !Fits(strategy.results, out)) {
      return false;
    }
    int level = 0;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const Value v = node.operands[k];
      const int form = FormOf(strategy.operands[k]);
      if (!Obtain(v, form, state)) return false;
      level = std::max<int>(level, state.available[Id(v)].level[form]);
    }
    for (size_t r = 0; r < node.types.size(); ++r) {
      state.available[Id(node.result(static_cast<int>(r)))].Set(
          FormOf(strategy.results[r]), level);
    }
    state.us += Factor(Id(node.result()), FormOf(strategy.results[0])) *
                NodeUs(node, Share(strategy, in, out));
    return true;
  }

  // The factor of a cost: a power of two from 2^-8 to 2^7 when `shuffle` is
  // set, else 1.
  double Factor(int value, int form) const {
    if (shuffle_ == 0) return 1;
    uint64_t x = shuffle_ + static_cast<uint64_t>(value * kForms + form);
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15;
    return std::ldexp(1.0, static_cast<int>(x >> 60) - 8);
  }

  // The largest fraction of the node's work that one worker has.
  double Share(const Strategy& strategy,
               const std::vector<const TensorType*>& in,
               const std::vector<const TensorType*>& out) const {
    const auto share_of = [this](const Placement& p, const TensorType& t) {
      if (p.kind != Placement::kSplit) return 1.0;
      const int64_t size = t.dims[p.axis];
      return static_cast<double>((size + workers_ - 1) / workers_) /
             static_cast<double>(size);
    };
    double share = 1;
    for (size_t i = 0; i < in.size(); ++i) {
      share = std::min(share, share_of(strategy.operands[i], *in[i]));
    }
    for (size_t i = 0; i < out.size(); ++i) {
      share = std::min(share, share_of(strategy.results[i], *out[i]));
    }
    return share;
  }

  // Whether `value` is computed tile by tile. Its rows are then never all
  // available at once, so that they cannot be redistributed over the workers.
  bool IsTiled(Value value) const {
    return tiles_ > 1 && !value.node->def().Has(kLeaf) &&
           value.type().rank() > 0 && value.type().dims[0] == rows_;
  }

  // Makes `value` available in `form` and adds the cost to the state. Returns
  // false when that is not possible.
  bool Obtain(Value value, int form, State& state) const {
    Available& available = state.available[Id(value)];
    const bool param = value.node->kind == OpKind::kParam;
    if (param && available.mask == 0) {
      available.home = static_cast<uint8_t>(form == kSum ? kWhole : form);
      available.Set(available.home, 0);
    }
    if (available.has(form)) return true;
    if (form == kAxis0 && IsTiled(value)) return false;
    const double bytes = static_cast<double>(value.type().bytes());
    if (available.has(kWhole)) {
      // Rows of a sparse batch are packed in groups and cannot be sliced.
      if (value.node->kind == OpKind::kGatherSparse) return false;
      available.Set(form, available.level[kWhole]);
      if (form != kSum) {
        state.us += kNodeUs + 2 * bytes / workers_ / kCacheBytesPerUs;
      }
      return true;
    }
    if (form == kSum || value.type().dtype != DType::kF32) return false;
    int from = kSum;
    while (!available.has(from)) ++from;
    if (from == kAxis0 && IsTiled(value)) return false;
    double moved = 0;  // per worker, written and read
    if (from == kSum) {
      moved = form == kWhole ? (1 + workers_) * bytes : 2 * bytes;
    } else {
      moved = (form == kWhole ? 1 + 1.0 / workers_ : 2.0 / workers_) * bytes;
    }
    state.us += Factor(Id(value), form) * (kNodeUs + moved / kSharedBytesPerUs);
    const int level = available.level[from] + 1;
    if (level > state.level) {
      state.us += kBarrierUs * std::log2(static_cast<double>(workers_)) *
                  static_cast<double>(IsTiled(value) ? tiles_ : 1);
      state.level = level;
    }
    available.Set(form, level);
    return true;
  }

  // Converts each update to the placement of its param and each result to
  // replicated.
  bool Finish(State& state) const {
    for (const Output& out : graph_.outputs()) {
      int form = kWhole;
      if (out.kind == Output::kUpdate) {
        const Value param = graph_.FindLeaf(out.name)->result();
        Available& available = state.available[Id(param)];
        if (available.mask == 0) {  // no node reads the param
          const Available& made = state.available[Id(out.value)];
          available.home = kWhole;
          if (made.has(kAxis0 + 1)) available.home = kAxis0 + 1;
          if (made.has(kAxis0)) available.home = kAxis0;
        }
        form = available.home;
      }
      if (!Obtain(out.value, form, state)) return false;
    }
    return true;
  }

  // Clears values without further readers, so that states that differ only in
  // these compare as equal.
  void Forget(const Node& node, int i, State& state) const {
    for (const Value& v : node.operands) {
      if (last_use_[Id(v)] > i || v.node->kind == OpKind::kParam) continue;
      state.available[Id(v)] = {};
    }
  }

  // Keeps the cheapest of equal states, and of all states the kBeam cheapest.
  void Prune(std::vector<State>& states) const {
    std::sort(states.begin(), states.end(),
              [](const State& a, const State& b) { return a.us < b.us; });
    std::unordered_set<std::string> seen;
    std::vector<State> kept;
    for (State& state : states) {
      std::string key(reinterpret_cast<const char*>(state.available.data()),
                      state.available.size() * sizeof(Available));
      absl::StrAppend(&key, state.level);
      if (!seen.insert(std::move(key)).second) continue;
      kept.push_back(std::move(state));
      if (kept.size() == kBeam) break;
    }
    states = std::move(kept);
  }

  const Graph& graph_;
  const int workers_;
  const int64_t rows_, tiles_;
  const uint64_t shuffle_;
  std::map<const Node*, int> first_value_;
  std::vector<int> last_use_;  // by value: index of a node; size(): an output
  std::vector<Record> records_;
  std::vector<State> beam_;
  const Node* stuck_ = nullptr;  // the first node without a feasible strategy
  State best_;
};

// The number of rows of the batch, which is that of the indices of the gathers;
// 0 when the graph has no gather.
int64_t GatheredRows(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    const std::optional<RowLookup> lookup = LookupOf(*node);
    if (lookup) return node->operands[lookup->indices].type().dims[0];
  }
  return 0;
}

// The bytes per row of the widest value that is computed row by row, for one
// model: a graph of several models has the same tiles as that of one.
int64_t RowBytes(const Graph& graph, int64_t rows) {
  int64_t bytes = 0;
  for (const auto& node : graph.nodes()) {
    if (node->def().Has(kLeaf)) continue;
    for (const TensorType& t : node->types) {
      if (t.rank() == 2 && t.dims[0] == rows) {
        bytes = std::max(bytes, t.num_elements() / rows * DTypeBytes(t.dtype));
      }
    }
  }
  return bytes;
}

// The number of rows per tile for `rows` rows of `row_bytes` bytes; 0 when the
// batch is not tiled. It is a multiple of the kernels' row blocks unless rows
// are very wide.
int64_t TileRowsFor(int64_t rows, int64_t row_bytes,
                    const PartitionOptions& options) {
  constexpr int64_t kUnit = 32;
  if (rows * row_bytes <= options.kWholeTiles * options.tile_bytes) return 0;
  int64_t tile = std::max<int64_t>(1, options.tile_bytes / row_bytes);
  tile = std::max(tile, (rows + options.max_tiles - 1) / options.max_tiles);
  if (tile > kUnit) tile = tile / kUnit * kUnit;
  return tile < rows ? tile : 0;
}

// The largest number of rows of the batch that a worker has.
int64_t WorkerRows(const Partition& partition, int64_t rows) {
  for (const auto& [node, strategy] : partition.strategies) {
    if (LookupOf(*node) && strategy.results[0] == Placement::Split(0)) {
      return (rows + partition.workers - 1) / partition.workers;
    }
  }
  return rows;
}

}  // namespace

double NodeUs(const Node& node, double share) {
  const OpCost cost = CostOf(node);
  return kNodeUs + share * std::max(cost.flops / FlopsPerUs(node.def()),
                                    cost.bytes / kCacheBytesPerUs);
}

absl::StatusOr<Partition> PartitionGraph(const Graph& graph, int workers,
                                         const PartitionOptions& options) {
  CHECK(workers >= 1);
  Partition partition;
  partition.workers = workers;
  partition.graph = graph.Clone();
  UnfuseEpilogues(partition.graph);
  const int64_t rows = GatheredRows(graph);
  const int64_t row_bytes = rows == 0 ? 0 : RowBytes(graph, rows);
  int64_t tile_rows = TileRowsFor(rows, row_bytes, options);
  if (tile_rows > 0) {
    Graph apart = partition.graph.Clone();
    UnfuseUpdates(apart);
    Graph trial = apart.Clone();
    partition.not_tiled = TileRows(trial, tile_rows);
    if (partition.not_tiled.ok()) partition.graph = std::move(apart);
    if (!partition.not_tiled.ok()) tile_rows = 0;
  }
  if (ModelsOf(graph) > 0) {
    partition.tile_rows = tile_rows;
    RETURN_IF_ERROR(SpreadModels(partition));
    return partition;
  }
  const auto search_with = [&](int64_t rows_of_tile) -> absl::Status {
    const int64_t tiles =
        rows_of_tile == 0 ? 1 : (rows + rows_of_tile - 1) / rows_of_tile;
    Search search(partition.graph, workers, rows, tiles, options.shuffle);
    RETURN_IF_ERROR(search.Run());
    search.Fill(partition);
    return absl::OkStatus();
  };
  absl::Status status = search_with(tile_rows);
  if (absl::IsUnimplemented(status) && tile_rows > 0) {
    partition.not_tiled = std::move(status);
    tile_rows = 0;
    status = search_with(tile_rows);
  }
  RETURN_IF_ERROR(status);
  if (tile_rows > 0) {
    partition.tile_rows =
        TileRowsFor(WorkerRows(partition, rows), row_bytes, options);
  }
  return partition;
}

std::string Partition::ToString() const {
  std::string text;
  const auto line = [&](Node& node, int r, const Placement& placement) {
    const TensorType local = LocalType(node.types[r], placement, workers, 0);
    std::string op = node.def().Has(kLeaf) ? "" : node.op();
    absl::StrAppendFormat(
        &text, "%-12s %-16s %-16s %-12s %s\n", graph.NameOf(node.result(r)), op,
        node.types[r].ToString(), placement.ToString(),
        local == node.types[r] ? "" : absl::StrCat(local.ToString(), " of 0"));
  };
  for (const auto& node : graph.nodes()) {
    if (node->kind == OpKind::kParam) line(*node, 0, homes.at(node->name()));
    const auto it = strategies.find(node.get());
    if (it == strategies.end()) continue;
    for (int r = 0; r < static_cast<int>(node->types.size()); ++r) {
      line(*node, r, it->second.results[r]);
    }
  }
  if (tile_rows > 0) {
    absl::StrAppend(&text, "a worker's rows are cut in tiles of ", tile_rows,
                    ", one after the other\n");
  }
  if (!not_tiled.ok()) {
    absl::StrAppend(&text, "rows are not cut in tiles: ", not_tiled.message(),
                    "\n");
  }
  absl::StrAppendFormat(&text, "predicted: %.1f us a step\n", us);
  return text;
}

}  // namespace onestep
