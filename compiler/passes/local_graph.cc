// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/passes/partition.h"
#include "compiler/passes/passes.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

class Localizer {
 public:
  Localizer(const Partition& partition, int worker)
      : partition_(partition), worker_(worker) {}

  absl::StatusOr<Graph> Run() {
    for (const auto& node : partition_.graph.nodes()) {
      RETURN_IF_ERROR(Emit(*node));
    }
    for (const Output& out : partition_.graph.outputs()) {
      out_.set_phase(out.value.node->phase);
      if (out.kind == Output::kResult) {
        out_.AddResult(out.name,
                       Obtain(out.value, ByModels(out.value.type())).value);
      } else {
        out_.AddUpdate(out_.FindLeaf(out.name)->result(),
                       Obtain(out.value, partition_.homes.at(out.name)).value);
      }
    }
    GroupExchanges();
    RETURN_IF_ERROR(out_.Verify());
    return std::move(out_);
  }

 private:
  // The local tensor of a value in one placement. `level` is the number of
  // barriers after which it is available. All workers must agree on the level,
  // even when their nodes for it differ.
  struct LocalValue {
    Placement placement;
    Value value;
    int level = 0;
  };
  using LocalValues = std::vector<LocalValue>;

  LocalValues& ValuesOf(Value v) { return values_[{v.node, v.index}]; }

  TensorType LocalType(TensorType type, const Placement& placement) const {
    return onestep::LocalType(std::move(type), placement, partition_.workers,
                              worker_);
  }

  absl::Status Emit(Node& node) {
    out_.set_phase(node.phase);
    if (node.kind == OpKind::kInput) {
      const Placement home = ByModels(node.types[0]);
      ValuesOf(node.result()) = {
          {home, out_.AddInput(node.name(), LocalType(node.types[0], home))}};
      return absl::OkStatus();
    }
    if (node.kind == OpKind::kParam) {
      const Placement home = partition_.homes.at(node.name());
      ValuesOf(node.result()) = {
          {home, out_.AddParam(node.name(), LocalType(node.types[0], home))}};
      return absl::OkStatus();
    }
    if (node.kind == OpKind::kConstant) return absl::OkStatus();
    const Strategy& strategy = partition_.strategies.at(&node);
    int level = 0;
    std::vector<Value> operands;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const LocalValue local = Obtain(node.operands[k], strategy.operands[k]);
      operands.push_back(local.value);
      level = std::max(level, local.level);
    }
    if (OnlyWorker0Adds(node, strategy)) {
      ValuesOf(node.result()) = {{Placement::Partial(), operands[0], level}};
      return absl::OkStatus();
    }
    std::vector<TensorType> types;
    for (size_t r = 0; r < node.types.size(); ++r) {
      types.push_back(LocalType(node.types[r], strategy.results[r]));
    }
    out_.set_phase(node.phase);
    ASSIGN_OR_RETURN(Node* const local,
                     out_.AddNode(node.kind, std::move(operands),
                                  LocalAttrs(node, strategy, types)));
    local->fused_from = node.fused_from;
    level_[local] = level;
    for (int r = 0; r < static_cast<int>(node.types.size()); ++r) {
      ValuesOf(node.result(r))
          .push_back({strategy.results[r], local->result(r), level});
    }
    return absl::OkStatus();
  }

  // Whether the node adds a replicated bias to a partial sum. Only worker 0
  // adds it; on the other workers the addition is omitted.
  bool OnlyWorker0Adds(const Node& node, const Strategy& strategy) {
    return worker_ > 0 && node.kind == OpKind::kAddBias &&
           strategy.operands[1].kind == Placement::kPartial &&
           Find(node.operands[1], Placement::Replicated()) != nullptr;
  }

  const LocalValue* Find(Value v, const Placement& placement) {
    for (const LocalValue& local : ValuesOf(v)) {
      if (local.placement == placement) return &local;
    }
    return nullptr;
  }

  // Converts v to the placement `want`, from the placements that are available
  // and in the same way as Search::Obtain, which computes the cost.
  LocalValue Obtain(Value v, const Placement& want) {
    if (const LocalValue* const local = Find(v, want)) return *local;
    LocalValue made{want, {}, 0};
    const LocalValue* const whole = Find(v, Placement::Replicated());
    if (v.node->kind == OpKind::kConstant) {
      const bool nothing = want.kind == Placement::kPartial && worker_ > 0;
      made.value =
          out_.AddConstant(nothing ? 0 : v.node->as<ConstantAttrs>().value,
                           LocalType(v.type(), want));
    } else if (whole == nullptr) {
      made = Exchange(v, want);
    } else if (want.kind == Placement::kSplit) {
      const Range range =
          RangeOf(v.type().dims[want.axis], partition_.workers, worker_);
      made.level = whole->level;
      made.value = out_.Add(OpKind::kSlice, {whole->value},
                            SliceAttrs{want.axis, range.begin, range.size()});
    } else {
      made.level = whole->level;
      made.value = worker_ == 0 ? whole->value : out_.AddConstant(0, v.type());
    }
    level_.try_emplace(made.value.node, made.level);
    ValuesOf(v).push_back(made);
    return made;
  }

  LocalValue Exchange(Value v, const Placement& want) {
    const LocalValue* from = Find(v, Placement::Partial());
    ExchangeAttrs attrs;
    attrs.workers = partition_.workers;
    for (int axis = 0; from == nullptr; ++axis) {
      CHECK(axis < v.type().rank());
      from = Find(v, Placement::Split(axis));
      attrs.from = axis;
      attrs.full = v.type().dims[axis];
    }
    if (want.kind == Placement::kSplit) {
      const Range range =
          RangeOf(v.type().dims[want.axis], partition_.workers, worker_);
      attrs.to = want.axis;
      attrs.begin = range.begin;
      attrs.size = range.size();
    }
    const int level = from->level + 1;
    attrs.barrier = level;
    return {want, out_.Add(OpKind::kExchange, {from->value}, attrs), level};
  }

  // Orders the nodes by level, so that nodes of the same level are contiguous;
  // within a level the exchanges come first.
  void GroupExchanges() {
    const auto key = [this](const Node* node) {
      const auto it = level_.find(node);
      const int level = it == level_.end() ? 0 : it->second;
      return 2 * level - (node->kind == OpKind::kExchange ? 1 : 0);
    };
    std::vector<Node*> order;
    for (const auto& node : out_.nodes()) order.push_back(node.get());
    std::stable_sort(
        order.begin(), order.end(),
        [&](const Node* a, const Node* b) { return key(a) < key(b); });
    out_.Reorder(order);
  }

  const Partition& partition_;
  const int worker_;
  Graph out_;
  std::map<std::pair<const Node*, int>, LocalValues> values_;
  std::map<const Node*, int> level_;  // by node of out_; absent: 0
};

// Fuses epilogues again where no exchange was inserted. Nodes that are dead on
// only one worker stay, because they may contain an exchange for which other
// workers wait.
absl::Status Clean(Graph& graph) {
  PassContext context{graph, {}};
  return FuseBiasActivation(context).status();
}

// Numbers exchanges and barriers from 0, in order. Adjacent exchanges with the
// same level share a barrier.
void NumberExchanges(Graph& graph) {
  int64_t index = 0, barrier = -1;
  const Node* before = nullptr;
  int64_t shared = 0;  // the previous exchange's barrier before renumbering
  for (const auto& node : graph.nodes()) {
    if (node->kind == OpKind::kExchange) {
      ExchangeAttrs& attrs = std::get<ExchangeAttrs>(node->attrs);
      const bool joins = before != nullptr &&
                         before->kind == OpKind::kExchange &&
                         shared == attrs.barrier;
      shared = attrs.barrier;
      attrs.barrier = joins ? barrier : ++barrier;
      attrs.index = index++;
    }
    before = node.get();
  }
}

absl::StatusOr<Graph> LocalGraph(const Partition& partition, int worker) {
  ASSIGN_OR_RETURN(Graph graph, Localizer(partition, worker).Run());
  if (partition.tile_rows > 0) {
    RETURN_IF_ERROR(TileRows(graph, partition.tile_rows));
  }
  RETURN_IF_ERROR(Clean(graph));
  NumberExchanges(graph);
  RETURN_IF_ERROR(graph.Verify());
  return graph;
}

// The sequence of exchanges as text. It must be the same for all workers, which
// execute them at the same time.
std::string ExchangesText(const Graph& graph) {
  std::string text;
  for (const auto& node : graph.nodes()) {
    if (node->kind != OpKind::kExchange) continue;
    const ExchangeAttrs& attrs = node->as<ExchangeAttrs>();
    absl::StrAppend(&text, attrs.barrier, " ", attrs.from, " ", attrs.to, " ",
                    attrs.full, "\n");
  }
  return text;
}

}  // namespace

TensorType LocalType(TensorType type, const Placement& placement, int workers,
                     int worker) {
  if (placement.kind == Placement::kSplit) {
    int64_t& size = type.dims[placement.axis];
    size = RangeOf(size, workers, worker).size();
  }
  if (placement.kind == Placement::kModels) {
    type.models = RangeOf(type.models, workers, worker).size();
  }
  return type;
}

absl::StatusOr<std::vector<Graph>> LocalGraphs(Partition& partition) {
  std::vector<Graph> graphs;
  absl::Status status;
  for (int w = 0; w < partition.workers && status.ok(); ++w) {
    absl::StatusOr<Graph> graph = LocalGraph(partition, w);
    status = graph.status();
    if (!status.ok()) break;
    graphs.push_back(*std::move(graph));
    if (ExchangesText(graphs[w]) == ExchangesText(graphs[0])) continue;
    const std::string differ = absl::StrCat(
        "partition: the exchanges of workers 0 and ", w, " differ");
    // Tiling can differ between workers: where one worker has a constant zero
    // instead of rows, only the other worker's exchange is tiled.
    status = partition.tile_rows > 0 ? absl::UnimplementedError(differ)
                                     : absl::InternalError(differ);
  }
  if (absl::IsUnimplemented(status) && partition.tile_rows > 0) {
    partition.not_tiled = status;
    partition.tile_rows = 0;
    return LocalGraphs(partition);
  }
  RETURN_IF_ERROR(status);
  return graphs;
}

int CountExchanges(const Graph& local) {
  int barriers = 0;
  for (const auto& node : local.nodes()) {
    if (node->kind != OpKind::kExchange) continue;
    barriers = static_cast<int>(node->as<ExchangeAttrs>().barrier) + 1;
  }
  return barriers;
}

}  // namespace onestep
