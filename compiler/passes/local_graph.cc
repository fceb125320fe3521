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
  // A value in one placement, and the barriers that every worker has passed
  // when it is there: they must agree on that, whatever each does for it.
  struct Held {
    Placement placement;
    Value value;
    int level = 0;
  };
  using Available = std::vector<Held>;

  Available& AvailableOf(Value v) { return available_[{v.node, v.index}]; }

  TensorType LocalType(TensorType type, const Placement& placement) const {
    return PartOf(std::move(type), placement, partition_.workers, worker_);
  }

  absl::Status Emit(Node& node) {
    out_.set_phase(node.phase);
    if (node.kind == OpKind::kInput) {
      const Placement home = ByModels(node.types[0]);
      AvailableOf(node.result()) = {
          {home, out_.AddInput(node.name(), LocalType(node.types[0], home))}};
      return absl::OkStatus();
    }
    if (node.kind == OpKind::kParam) {
      const Placement home = partition_.homes.at(node.name());
      AvailableOf(node.result()) = {
          {home, out_.AddParam(node.name(), LocalType(node.types[0], home))}};
      return absl::OkStatus();
    }
    if (node.kind == OpKind::kConstant) return absl::OkStatus();
    const Strategy& strategy = partition_.strategies.at(&node);
    int level = 0;
    std::vector<Value> operands;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const Held held = Obtain(node.operands[k], strategy.operands[k]);
      operands.push_back(held.value);
      level = std::max(level, held.level);
    }
    if (IsAdditionOfNothing(node, strategy)) {
      AvailableOf(node.result()) = {{Placement::Partial(), operands[0], level}};
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
      AvailableOf(node.result(r))
          .push_back({strategy.results[r], local->result(r), level});
    }
    return absl::OkStatus();
  }

  // A bias that is added to a partial sum is added by worker 0 alone.
  bool IsAdditionOfNothing(const Node& node, const Strategy& strategy) {
    return worker_ > 0 && node.kind == OpKind::kAddBias &&
           strategy.operands[1].kind == Placement::kPartial &&
           Find(node.operands[1], Placement::Replicated()) != nullptr;
  }

  const Held* Find(Value v, const Placement& placement) {
    for (const Held& held : AvailableOf(v)) {
      if (held.placement == placement) return &held;
    }
    return nullptr;
  }

  // The local value of `v` as `want`, made from what there is: as the search
  // of the partition reckoned.
  Held Obtain(Value v, const Placement& want) {
    if (const Held* const held = Find(v, want)) return *held;
    Held made{want, {}, 0};
    const Held* const whole = Find(v, Placement::Replicated());
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
    AvailableOf(v).push_back(made);
    return made;
  }

  Held Exchange(Value v, const Placement& want) {
    const Held* from = Find(v, Placement::Partial());
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

  // What waits for as many barriers stands together, exchanges first.
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
  std::map<std::pair<const Node*, int>, Available> available_;
  std::map<const Node*, int> level_;  // of nodes of out_; leaves: 0
};

// Epilogues that no exchange came into go back where they were. What is dead
// on one worker alone stays: another may wait for the exchange it reads.
absl::Status Clean(Graph& graph) {
  PassContext context{graph, {}};
  return FuseBiasActivation(context).status();
}

// Exchanges and barriers count from 0, in order. A barrier is shared by those
// that had the same one and still stand together.
void NumberExchanges(Graph& graph) {
  int64_t index = 0, barrier = -1;
  const Node* before = nullptr;
  int64_t shared = 0;  // the number of the barrier before
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

// What all workers must do at the same time, as text.
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

TensorType PartOf(TensorType type, const Placement& placement, int workers,
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
    // Where one has zeros for another's rows, only that one's are tiled.
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
