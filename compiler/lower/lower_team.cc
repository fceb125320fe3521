// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/lower/implementation.h"
#include "compiler/lower/lower.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/micro_gemm.h"
#include "kernels/probe.h"
#include "runtime/base/status.h"
#include "runtime/cpu/team.h"
#include "runtime/cpu/team_program.h"

namespace onestep {
namespace {

// One exchange as a worker sees it. Floats in the memory of the exchange:
// the workers' partial sums one after the other, or the whole value.
struct ExchangeStep {
  ExchangeAttrs attrs;
  int worker = 0;
  int64_t count = 0;  // floats of the whole value
  // The worker's part of the value it gives and of the one it takes.
  AxisRuns gives, takes;
  float* const* from;
  float* const* to;

  void Give(float* memory) const {
    if (attrs.from < 0) memory += worker * count;
    const float* x = *from;
    float* y = memory + gives.begin;
    for (int64_t o = 0; o < gives.outer; ++o) {
      std::memcpy(y, x, gives.run * sizeof(float));
      x += gives.run;
      y += gives.stride;
    }
  }

  void Take(const float* memory) const {
    float* y = *to;
    const float* x = memory + takes.begin;
    for (int64_t o = 0; o < takes.outer; ++o) {
      if (attrs.from >= 0 || attrs.workers == 1) {
        std::memcpy(y, x, takes.run * sizeof(float));
      } else {  // in the order of the workers, so that all get equal bits
        cpu::Add(x, x + count, y, takes.run);
        for (int64_t w = 2; w < attrs.workers; ++w) {
          cpu::Add(y, x + w * count, y, takes.run);
        }
      }
      y += takes.run;
      x += takes.stride;
    }
  }
};

// The range of an axis, or all where the axis is -1.
AxisRuns RunsOrAll(const TensorType& whole, int64_t axis, Range range) {
  return axis < 0 ? AllOf(whole) : RunsOf(whole, axis, range);
}

TensorType WholeType(const Node& exchange) {
  const ExchangeAttrs& attrs = exchange.as<ExchangeAttrs>();
  TensorType type = exchange.operands[0].type();
  if (attrs.from >= 0) type.dims[attrs.from] = attrs.full;
  return type;
}

int64_t ExchangeBytes(const Node& exchange) {
  const ExchangeAttrs& attrs = exchange.as<ExchangeAttrs>();
  return WholeType(exchange).bytes() * (attrs.from < 0 ? attrs.workers : 1);
}

// Whether the library's kernels are the faster ones for a result that is `n`
// wide. Measured on Zen 5: with AVX-512 ours are by 2 to 4 %, unless c is
// narrower than a vector (10 columns: 5 %).
bool MicroGemmIsFaster(int64_t n) { return !HasAvx512() || n < 16; }

// Builds the chain of one worker.
class WorkerLowering {
 public:
  WorkerLowering(const TeamOptions& options, int worker, Graph& graph,
                 const Partition& partition, Team& team,
                 const ExchangeMemory& exchanges)
      : options_(options),
        worker_(worker),
        graph_(graph),
        partition_(partition),
        team_(team),
        exchanges_(exchanges) {}

  absl::StatusOr<TeamProgram::Worker> Run(std::string& plan_text,
                                          ProgramMemory& memory) {
    RETURN_IF_ERROR(SeparateOutputs(graph_));
    const MemoryPlan plan = PlanMemory(graph_);
    memory.AddArena(graph_, plan);
    memory.AddParams(graph_);
    TeamProgram::Worker worker;
    ASSIGN_OR_RETURN(worker.chain, Chain::Create(plan.slots, plan.arena_bytes));
    const LowerContext context = {graph_, plan, *worker.chain, nullptr, 1};
    FindNextRows(context);
    std::vector<Node*> exchanges;
    for (const auto& node : graph_.nodes()) {
      const bool exchange = node->kind == OpKind::kExchange;
      if (!exchange || (!exchanges.empty() &&
                        node->as<ExchangeAttrs>().barrier !=
                            exchanges[0]->as<ExchangeAttrs>().barrier)) {
        AddExchanges(context, exchanges);
      }
      if (exchange) {
        exchanges.push_back(node.get());
        continue;
      }
      RETURN_IF_ERROR(AddNode(context, *node));
    }
    AddExchanges(context, exchanges);
    for (const auto& [from, to] : plan.copies) {
      AddCopyStep(plan, *worker.chain, from, to);
    }
    RETURN_IF_ERROR(AddParams(worker));
    RETURN_IF_ERROR(AddOffsets(worker));
    RETURN_IF_ERROR(AddResults(worker));
    plan_text = plan.ToString(graph_);
    RETURN_IF_ERROR(worker.chain->Finish("", plan_text));
    return worker;
  }

 private:
  absl::Status AddNode(const LowerContext& context, Node& node) {
    if (node.def().Has(kLeaf)) return absl::OkStatus();
    if (node.kind == OpKind::kConstant) {
      context.chain.FillSlot(context.plan.SlotOf(node.result()),
                             node.as<ConstantAttrs>().value);
      return absl::OkStatus();
    }
    const auto next_rows = next_rows_.find(&node);
    if (next_rows != next_rows_.end()) {
      LowerContext fetching = context;
      fetching.next_rows = &next_rows->second;
      return AddChosenStep(fetching, node, loops::Lower(fetching, node),
                           {KernelSource::kLoop});
    }
    std::vector<KernelSource> wanted = {KernelSource::kLoop};
    if (options_.micro_gemm && node.kind == OpKind::kMatMul &&
        MicroGemmIsFaster(node.types[0].dims[1])) {
      wanted.insert(wanted.begin(), KernelSource::kXsmm);
    }
    return AddChosenStep(context, node, loops::Lower(context, node), wanted);
  }

  // While a layer reads a batch, the rows of the next gather are asked for: in
  // the dense weight gradient, the last use and long; over nonzeros, where
  // both products are short, half in each.
  void FindNextRows(const LowerContext& context) {
    std::vector<Node*> gathers;
    for (const auto& node : graph_.nodes()) {
      if (node->kind == OpKind::kGatherConvert ||
          node->kind == OpKind::kGatherSparse) {
        gathers.push_back(node.get());
      }
    }
    for (size_t i = 0; i < gathers.size(); ++i) {
      const bool wraps = i + 1 == gathers.size();
      const std::optional<NextRows> next =
          RowsOf(context, *gathers[wraps ? 0 : i + 1], wraps);
      if (!next) continue;
      NextRows first_half = *next, second_half = *next;
      first_half.count /= 2;
      second_half.first += first_half.count;
      second_half.count -= first_half.count;
      for (Node* const user : graph_.Users(gathers[i]->result())) {
        if (user->kind == OpKind::kMatMul && user->as<MatMulAttrs>().trans_a) {
          next_rows_[user] = *next;
        } else if (user->kind == OpKind::kSparseMatMul) {
          next_rows_[user] = first_half;
        } else if (user->kind == OpKind::kSparseOuter) {
          next_rows_[user] = second_half;
        }
      }
    }
  }

  // The rows that `gather` reads, in the step that follows if `later`; none
  // when they are not a range of an input.
  static std::optional<NextRows> RowsOf(const LowerContext& context,
                                        Node& gather, bool later) {
    const GatherOp op(gather);
    Value index = op.indices;
    NextRows rows;
    rows.count = index.type().num_elements();
    while (index.node->kind == OpKind::kSlice) {
      rows.first += index.node->as<SliceAttrs>().begin;
      index = index.node->operands[0];
    }
    const Value table = op.table;
    if (index.node->kind != OpKind::kInput ||
        table.node->kind != OpKind::kInput) {
      return std::nullopt;
    }
    rows.row_bytes = table.type().bytes() / table.type().dims[0];
    rows.table = context.Address<char>(table);
    const int slot = context.plan.SlotOf(index);
    rows.indices = later ? context.chain.next_address<int32_t>(slot)
                         : context.chain.address<int32_t>(slot);
    return rows;
  }

  // The exchanges that share a barrier: all give, wait, and take.
  void AddExchanges(const LowerContext& context, std::vector<Node*>& nodes) {
    if (nodes.empty()) return;
    auto steps = std::make_shared<std::vector<ExchangeStep>>();
    StepInfo give, take;
    for (Node* const node : nodes) {
      const ExchangeAttrs& attrs = node->as<ExchangeAttrs>();
      const TensorType whole = WholeType(*node);
      const Range given =
          RangeOf(attrs.full, static_cast<int>(attrs.workers), worker_);
      steps->push_back(
          {.attrs = attrs,
           .worker = worker_,
           .count = whole.num_elements(),
           .gives = RunsOrAll(whole, attrs.from, given),
           .takes = RunsOrAll(whole, attrs.to,
                              {attrs.begin, attrs.begin + attrs.size}),
           .from = context.Address<float>(node->operands[0]),
           .to = context.Address<float>(node->result())});
      StepInfo one = Describe(context.plan, *node);
      const char* const next = take.label.empty() ? "" : "; ";
      const double given_bytes =
          steps->back().gives.outer * steps->back().gives.run * sizeof(float);
      absl::StrAppend(&give.label, next, "give ",
                      node->operands[0].type().ToString());
      give.bytes += 2 * given_bytes;
      absl::StrAppend(&take.label, next, one.label);
      take.flops += one.flops;
      take.bytes += one.bytes;
    }
    const char* const phase = ToString(nodes[0]->phase);
    nodes.clear();
    // The first group of a step turns to the other half of the memory.
    const bool turns = std::exchange(first_exchange_, false);
    AddExchangeStep(context, std::move(give), "give", phase,
                    [steps, turns, parity = parity_, &memory = exchanges_] {
                      if (turns) *parity ^= 1;
                      for (const ExchangeStep& step : *steps) {
                        step.Give(memory.at(step.attrs.index, *parity));
                      }
                    });
    StepInfo wait;
    wait.kind = StepKind::kWait;
    wait.label = "wait for the other workers";
    AddExchangeStep(context, std::move(wait), "wait", phase,
                    [worker = worker_, &barrier = team_.barrier()] {
                      barrier.Wait(worker);
                    });
    AddExchangeStep(context, std::move(take), "exchange", phase,
                    [steps, parity = parity_, &memory = exchanges_] {
                      for (const ExchangeStep& step : *steps) {
                        step.Take(memory.at(step.attrs.index, *parity));
                      }
                    });
  }

  static void AddExchangeStep(const LowerContext& context, StepInfo info,
                              const char* op, const char* phase,
                              Chain::Call call) {
    const bool wait = info.kind == StepKind::kWait;
    if (!wait) info.kind = StepKind::kExchange;
    info.op = op;
    info.phase = phase;
    info.implementation = wait ? "barrier" : "shared memory";
    context.chain.AddStep(std::move(info), std::move(call));
  }

  // One worker alone works in the caller's memory.
  absl::Status AddParams(TeamProgram::Worker& worker) const {
    if (options_.workers == 1) return absl::OkStatus();
    for (const auto& node : graph_.nodes()) {
      if (node->kind != OpKind::kParam) continue;
      const Placement& home = partition_.homes.at(node->name());
      const TensorType& whole =
          partition_.graph.FindLeaf(node->name())->types[0];
      AxisRuns runs = AllOf(whole);
      if (home.kind == Placement::kSplit || home.kind == Placement::kModels) {
        const bool models = home.kind == Placement::kModels;
        const int64_t full = models ? whole.models : whole.dims[home.axis];
        runs = RunsOf(whole, models ? whole.rank() : home.axis,
                      RangeOf(full, options_.workers, worker_));
      }
      const int64_t bytes = DTypeBytes(whole.dtype);
      TeamProgram::Piece piece = {node->name(),       runs.outer,
                                  runs.run * bytes,   runs.stride * bytes,
                                  runs.begin * bytes, /*gives_back=*/false};
      // Of a whole param worker 0 gives the new value.
      piece.gives_back =
          (home.kind != Placement::kReplicated || worker_ == 0) &&
          graph_.UpdateOf(node.get());
      ASSIGN_OR_RETURN(Buffer memory, Buffer::Create(node->types[0].bytes()));
      worker.memory.push_back(std::move(memory));
      worker.pieces.push_back(std::move(piece));
    }
    return absl::OkStatus();
  }

  // Where this worker's models begin in inputs and results that are bound.
  absl::Status AddOffsets(TeamProgram::Worker& worker) const {
    const auto add = [&](const std::string& name,
                         const TensorType& whole) -> absl::Status {
      if (whole.models == 0) return absl::OkStatus();
      if (whole.num_elements() > 1 && options_.workers > 1) {
        return absl::UnimplementedError(absl::StrCat(
            "dispatch single: ", name, ": want one value of each model with ",
            "more than one worker, got ", whole.ToString()));
      }
      const Range range = RangeOf(whole.models, options_.workers, worker_);
      worker.offsets[name] = range.begin * DTypeBytes(whole.dtype);
      return absl::OkStatus();
    };
    for (const auto& node : partition_.graph.nodes()) {
      if (node->kind != OpKind::kInput) continue;
      RETURN_IF_ERROR(add(node->name(), node->types[0]));
    }
    for (const Output& out : partition_.graph.outputs()) {
      if (out.kind != Output::kResult) continue;
      RETURN_IF_ERROR(add(out.name, out.value.type()));
    }
    return absl::OkStatus();
  }

  absl::Status AddResults(TeamProgram::Worker& worker) const {
    if (worker_ == 0) return absl::OkStatus();
    for (const Output& out : graph_.outputs()) {
      if (out.kind != Output::kResult || out.value.type().models > 0) continue;
      ASSIGN_OR_RETURN(worker.results[out.name],
                       Buffer::Create(out.value.type().bytes()));
    }
    return absl::OkStatus();
  }

  const TeamOptions& options_;
  const int worker_;
  Graph& graph_;
  const Partition& partition_;
  Team& team_;
  const ExchangeMemory& exchanges_;
  std::map<const Node*, NextRows> next_rows_;  // of nodes that fetch ahead
  bool first_exchange_ = true;
  // The half of the exchange memory that this step uses.
  std::shared_ptr<int> parity_ = std::make_shared<int>(0);
};

std::vector<int64_t> BytesOfExchanges(const Graph& graph) {
  std::vector<int64_t> bytes;  // by index
  for (const auto& node : graph.nodes()) {
    if (node->kind == OpKind::kExchange) bytes.push_back(ExchangeBytes(*node));
  }
  return bytes;
}

}  // namespace

const char* TeamMatMulLibrary() { return cpu::MicroGemmLibrary(); }

absl::StatusOr<std::unique_ptr<Executable>> LowerToTeam(
    const Graph& graph, const TeamOptions& options, TeamReport& report) {
  ASSIGN_OR_RETURN(report.partition,
                   PartitionGraph(graph, options.workers, options.partition));
  ASSIGN_OR_RETURN(std::vector<Graph> graphs, LocalGraphs(report.partition));
  ASSIGN_OR_RETURN(std::unique_ptr<ExchangeMemory> exchanges,
                   ExchangeMemory::Create(BytesOfExchanges(graphs[0])));
  ASSIGN_OR_RETURN(std::shared_ptr<Team> team,
                   Team::Create(options.workers, options.affinity));
  std::vector<TeamProgram::Worker> workers;
  std::string plan;
  for (int w = 0; w < options.workers; ++w) {
    std::string text;
    ASSIGN_OR_RETURN(TeamProgram::Worker worker,
                     WorkerLowering(options, w, graphs[w], report.partition,
                                    *team, *exchanges)
                         .Run(text, report.memory));
    absl::StrAppend(&plan, "worker ", w, "\n", text);
    workers.push_back(std::move(worker));
  }
  absl::StrAppend(&plan, "exchange memory: ", exchanges->bytes(), " bytes\n");
  report.exchanges = CountExchanges(graphs[0]);
  const std::vector<StepInfo>& steps = workers[0].chain->steps();
  const int64_t library =
      std::count_if(steps.begin(), steps.end(),
                    [](const StepInfo& step) { return step.library; });
  std::string text = absl::StrCat(
      "team of ", options.workers,
      options.workers == 1 ? " worker: " : " workers: ", steps.size(),
      " calls a step each, ", report.exchanges,
      report.exchanges == 1 ? " exchange; " : " exchanges; ");
  if (library > 0) {
    absl::StrAppend(&text, library, " by ", cpu::MicroGemmLibrary(),
                    ", the rest own loops");
  } else {
    absl::StrAppend(&text, "own loops",
                    options.micro_gemm && cpu::MicroGemmLibrary() == nullptr
                        ? " (built without libxsmm)"
                        : "");
  }
  report.worker = std::move(graphs[0]);
  return std::make_unique<TeamProgram>(std::move(team), std::move(exchanges),
                                       std::move(workers), std::move(text),
                                       std::move(plan));
}

}  // namespace onestep
