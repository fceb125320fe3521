// SPDX-License-Identifier: Apache-2.0
// Every strategy of every op: workers that each run the op on their parts must
// together get what the float64 oracle gets from the whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/placement.h"
#include "compiler/ir/text.h"
#include "tests/kernels/op_cases.h"
#include "tests/oracle.h"
#include "tests/run_chain.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::ElementsAre;

using Tensor = std::vector<double>;

constexpr Placement R;
constexpr Placement S0{Placement::kSplit, 0};
constexpr Placement S1{Placement::kSplit, 1};
constexpr Placement P{Placement::kPartial, 0};

// Float64 sums in two orders: each rounding is 1e-16 relative, and what cancels
// leaves no less than a millionth of its terms.
constexpr double kNmse = 1e-20;

struct Range {
  int64_t begin, end;
};

// The part of `worker` of n: the first has more than the others, which are
// equal, so that ranges differ unless each is 1.
Range RangeOf(int64_t n, int worker, int workers) {
  const int64_t others = std::max<int64_t>(1, n / (workers + 1));
  const int64_t first = n - (workers - 1) * others;
  const int64_t begin = worker == 0 ? 0 : first + (worker - 1) * others;
  return {begin, begin + (worker == 0 ? first : others)};
}

TensorType CutType(TensorType type, Placement placement, Range range) {
  if (placement.kind == Placement::kSplit) {
    type.dims[placement.axis] = range.end - range.begin;
  }
  return type;
}

// Of a split value; any other is whole.
Tensor Cut(const TensorType& type, const Tensor& x, Placement placement,
           Range range) {
  if (placement.kind != Placement::kSplit) return x;
  const int64_t dim = type.dims[placement.axis];
  int64_t inner = 1;
  for (int i = placement.axis + 1; i < type.rank(); ++i) inner *= type.dims[i];
  Tensor part;
  for (int64_t i = 0; i < std::ssize(x); ++i) {
    const int64_t at = i / inner % dim;
    if (at >= range.begin && at < range.end) part.push_back(x[i]);
  }
  return part;
}

// Tensors whose sum is x.
std::vector<Tensor> Addends(const Tensor& x, int workers, std::mt19937& rng) {
  std::normal_distribution<double> normal;
  std::vector<Tensor> parts(workers, x);
  for (int w = 1; w < workers; ++w) {
    for (size_t i = 0; i < x.size(); ++i) {
      parts[w][i] = normal(rng);
      parts[0][i] -= parts[w][i];
    }
  }
  return parts;
}

// The length of the axes that `strategy` splits; 0: none, -1: they differ.
int64_t SplitLength(const Node& node, const Strategy& strategy) {
  int64_t length = 0;
  const auto see = [&length](const TensorType& type, Placement placement) {
    if (placement.kind != Placement::kSplit) return;
    const int64_t dim = type.dims[placement.axis];
    length = length == 0 || length == dim ? dim : -1;
  };
  for (size_t i = 0; i < node.operands.size(); ++i) {
    see(node.operands[i].type(), strategy.operands[i]);
  }
  for (size_t i = 0; i < node.types.size(); ++i) {
    see(node.types[i], strategy.results[i]);
  }
  return length;
}

// The results of one op, which must have these types.
absl::StatusOr<std::vector<Tensor>> RunOp(
    OpKind kind, const Attrs& attrs, const std::vector<TensorType>& in_types,
    const std::vector<Tensor>& in, const std::vector<TensorType>& types) {
  Graph graph;
  TensorMap bindings;
  std::vector<Value> operands;
  for (size_t i = 0; i < in.size(); ++i) {
    const std::string name = absl::StrCat("x", i);
    operands.push_back(graph.AddInput(name, in_types[i]));
    bindings[name] = in[i];
  }
  Node* node = nullptr;
  if (kind == OpKind::kConstant) {
    node =
        graph.AddConstant(std::get<ConstantAttrs>(attrs).value, types[0]).node;
  } else {
    absl::StatusOr<Node*> added = graph.AddNode(kind, operands, attrs);
    if (!added.ok()) return added.status();
    node = *added;
  }
  if (node->types != types) {
    return absl::InternalError(absl::StrCat(
        "want ", types[0].ToString(), ", got ", node->types[0].ToString()));
  }
  for (int i = 0; i < std::ssize(types); ++i) {
    graph.AddResult(absl::StrCat("y", i), node->result(i));
  }
  absl::StatusOr<TensorMap> outputs = Evaluate(graph, bindings);
  if (!outputs.ok()) return outputs.status();
  std::vector<Tensor> results;
  for (size_t i = 0; i < types.size(); ++i) {
    results.push_back(std::move(outputs->at(absl::StrCat("y", i))));
  }
  return results;
}

// What a worker has, and what it gets from it.
struct Worker {
  Range range = {0, 0};
  std::vector<TensorType> in_types, types;
  std::vector<Tensor> in, out;
};

// Runs `node` on the workers' parts; says what differs from the whole's
// results, nothing when they are equal.
std::string Difference(const Node& node, const std::vector<Tensor>& in,
                       const Strategy& strategy, int workers) {
  std::vector<TensorType> in_types;
  for (const Value& v : node.operands) in_types.push_back(v.type());
  const auto want = RunOp(node.kind, node.attrs, in_types, in, node.types);
  if (!want.ok()) return want.status().ToString();

  std::mt19937 rng(1);
  const int64_t length = SplitLength(node, strategy);
  std::vector<Worker> team(workers);
  for (int w = 0; w < workers; ++w) {
    if (length > 0) team[w].range = RangeOf(length, w, workers);
  }
  for (size_t i = 0; i < in.size(); ++i) {
    const Placement placement = strategy.operands[i];
    const std::vector<Tensor> addends =
        placement == P ? Addends(in[i], workers, rng)
                       : std::vector<Tensor>(workers, in[i]);
    for (int w = 0; w < workers; ++w) {
      Worker& worker = team[w];
      worker.in_types.push_back(CutType(in_types[i], placement, worker.range));
      worker.in.push_back(
          Cut(in_types[i], addends[w], placement, worker.range));
    }
  }
  for (Worker& worker : team) {
    for (size_t i = 0; i < node.types.size(); ++i) {
      worker.types.push_back(
          CutType(node.types[i], strategy.results[i], worker.range));
    }
    auto out = RunOp(node.kind, LocalAttrs(node, strategy, worker.types),
                     worker.in_types, worker.in, worker.types);
    if (!out.ok()) return out.status().ToString();
    worker.out = std::move(*out);
  }
  for (size_t i = 0; i < node.types.size(); ++i) {
    const Placement placement = strategy.results[i];
    Tensor sum((*want)[i].size());
    for (const Worker& worker : team) {
      for (size_t j = 0; j < sum.size() && placement == P; ++j) {
        sum[j] += worker.out[i][j];
      }
      if (placement == P) continue;
      const Tensor part =
          Cut(node.types[i], (*want)[i], placement, worker.range);
      if (Nmse(worker.out[i], part) > kNmse) {
        return absl::StrCat("result ", i, " of a worker");
      }
    }
    if (placement == P && Nmse(sum, (*want)[i]) > kNmse) {
      return absl::StrCat("result ", i, ": the sum");
    }
  }
  return "";
}

std::vector<Tensor> OperandsOf(const Node& node, const TensorMap& bindings) {
  std::vector<Tensor> in;
  for (const Value& v : node.operands)
    in.push_back(bindings.at(v.node->name()));
  return in;
}

const Node& NodeOf(const OpCase& c) {
  const auto& nodes = c.graph.nodes();
  return **std::find_if(nodes.begin(), nodes.end(),
                        [&](const auto& node) { return node->kind == c.op; });
}

// The strategies of the last node of the graph with this body.
std::vector<std::string> StrategiesOf(const std::string& body) {
  const absl::StatusOr<Graph> graph =
      ParseGraph(absl::StrCat("graph {\n", body, "\n}\n"));
  EXPECT_OK(graph);
  std::vector<std::string> texts;
  if (!graph.ok()) return texts;
  const Node& node = *graph->nodes().back();
  for (const Strategy& strategy : node.def().rules.partition(node)) {
    texts.push_back(strategy.ToString());
  }
  return texts;
}

// ---- all ops ---------------------------------------------------------------

TEST(OpPartitionTest, WorkersGetTheWholesResultsByEveryStrategy) {
  std::set<std::string> listed, run;
  ForEachOpCase([&](const OpCase& c) {
    const Node& node = NodeOf(c);
    // What gather_sparse makes has no rows in memory to be cut:
    // random_team_test.cc runs its users.
    if (c.op == OpKind::kSparseMatMul || c.op == OpKind::kSparseOuter) return;
    const std::vector<Tensor> in = OperandsOf(node, c.bindings);
    for (const Strategy& strategy : node.def().rules.partition(node)) {
      const std::string text =
          absl::StrCat(node.op(), " ", strategy.ToString());
      const int64_t length = SplitLength(node, strategy);
      for (int workers : {1, 2, 3}) {
        listed.insert(absl::StrCat(text, " ", workers));
        if (length > 0 && length < workers) continue;
        run.insert(absl::StrCat(text, " ", workers));
        EXPECT_EQ(Difference(node, in, strategy, workers), "")
            << c.name << " " << text << " of " << workers;
      }
    }
  });
  EXPECT_EQ(run, listed);
}

TEST(OpPartitionTest, PartsOfAConstantAreConstants) {
  Graph graph;
  const Node& node = *graph.AddConstant(0.5f, F32({5, 3})).node;
  const std::vector<Strategy> list = node.def().rules.partition(node);
  EXPECT_EQ(list.size(), 3u);
  for (const Strategy& strategy : list) {
    EXPECT_EQ(Difference(node, {}, strategy, 2), "") << strategy.ToString();
  }
}

TEST(OpPartitionTest, EveryListBeginsReplicatedAndIsWellFormed) {
  std::set<OpKind> shared;  // that leave something to share
  ForEachOpCase([&shared](const OpCase& c) {
    SCOPED_TRACE(c.name);
    const Node& node = NodeOf(c);
    const std::vector<Strategy> list = node.def().rules.partition(node);
    ASSERT_FALSE(list.empty());
    if (list.size() > 1) shared.insert(c.op);
    EXPECT_EQ(list[0], (Strategy{std::vector(node.operands.size(), R),
                                 std::vector(node.types.size(), R)}));
    std::set<std::string> texts;
    const auto check = [](const TensorType& type, Placement placement) {
      EXPECT_TRUE(placement != P || type.dtype == DType::kF32);
      if (placement.kind == Placement::kSplit) {
        EXPECT_LT(placement.axis, type.rank());
      }
    };
    for (const Strategy& strategy : list) {
      EXPECT_TRUE(texts.insert(strategy.ToString()).second)
          << "twice " << strategy.ToString();
      ASSERT_EQ(strategy.operands.size(), node.operands.size());
      ASSERT_EQ(strategy.results.size(), node.types.size());
      for (size_t i = 0; i < node.operands.size(); ++i) {
        check(node.operands[i].type(), strategy.operands[i]);
      }
      for (size_t i = 0; i < node.types.size(); ++i) {
        check(node.types[i], strategy.results[i]);
      }
      EXPECT_GE(SplitLength(node, strategy), 0) << strategy.ToString();
    }
  });
  for (const OpDef& def : AllOps()) {
    if (def.Has(kLeaf) || def.kind == OpKind::kConstant) continue;
    const bool whole =
        def.kind == OpKind::kExchange || def.kind == OpKind::kBroadcastModels ||
        def.kind == OpKind::kSgnsWindow || def.kind == OpKind::kCbowWindow;
    EXPECT_EQ(shared.count(def.kind), whole ? 0u : 1u) << def.name;
  }
}

// That the numbers can differ: rules that one could think right.
TEST(OpPartitionTest, WrongStrategiesAreFound) {
  const std::string leaves = R"(graph {
    %x = input f32[4,4]
    %y = input f32[4,4]
    %b = input f32[4]
    %labels = input i32[4]
    )";
  const std::vector<std::pair<std::string, Strategy>> wrong = {
      {"relu(%x) : f32[4,4]", {{P}, {P}}},
      {"add(%x, %y) : f32[4,4]", {{P, R}, {P}}},
      {"mul(%x, %y) : f32[4,4]", {{P, P}, {P}}},
      {"add_bias(%x, %b) : f32[4,4]", {{P, R}, {P}}},
      {"reduce_rows(%x) : f32[4]", {{S0}, {R}}},
      {"softmax(%x) : f32[4,4]", {{S1}, {S1}}},
      {"softmax_grad(%x, %y) : f32[4,4]", {{S1, S1}, {S1}}},
      {"minus_one_hot(%x, %labels) : f32[4,4]", {{P, R}, {P}}},
      {"mse_grad(%x, %y) : f32[4,4]", {{S1, S1}, {S1}}},
      {"mse_grad(%x, %y) : f32[4,4]", {{R, P}, {P}}},
      {"nll_loss(%x, %labels) : f32[]", {{S0, S0}, {R}}},
      {"relu_grad(%x, %y) : f32[4,4]", {{P, R}, {P}}},
      {"matmul(%x, %y) {trans_a=true} : f32[4,4]", {{S0, R}, {S0}}},
      {"matmul(%x, %y, %b) {bias=true} : f32[4,4]", {{S1, S0, R}, {P}}},
      {"matmul(%x, %y, %b) {bias=true, activation=relu} : f32[4,4]",
       {{S1, S0, P}, {P}}}};
  std::mt19937 rng(3);
  std::normal_distribution<double> normal;
  for (const auto& [op, strategy] : wrong) {
    ASSERT_OK_AND_ASSIGN(const Graph graph,
                         ParseGraph(absl::StrCat(leaves, "%0 = ", op, "\n}")));
    const Node& node = *graph.nodes().back();
    std::vector<Tensor> in;
    for (const Value& v : node.operands) {
      Tensor& x = in.emplace_back(v.type().num_elements(), 1.0);
      for (double& e : x) {
        if (v.type().dtype == DType::kF32) e = normal(rng);
      }
    }
    EXPECT_NE(Difference(node, in, strategy, 2), "")
        << op << " " << strategy.ToString();
  }
}

// ---- attributes of the parts -----------------------------------------------

TEST(LocalAttrsTest, APartOfTheRowsKnowsTheBatch) {
  Graph graph;
  const Value z = graph.AddInput("z", F32({6, 3}));
  const Value labels = graph.AddInput("labels", {DType::kI32, {6}});
  const Node& nll = *graph.Add(OpKind::kNllLoss, {z, labels}).node;
  EXPECT_EQ(LocalAttrs(nll, {{S0, S0}, {P}}, {F32({})}), Attrs(MeanAttrs{6}));
  EXPECT_EQ(LocalAttrs(nll, {{R, R}, {R}}, {F32({})}), Attrs(MeanAttrs{0}));
  const Node& cut =
      *graph.Add(OpKind::kNllLoss, {z, labels}, MeanAttrs{64}).node;
  EXPECT_EQ(LocalAttrs(cut, {{S0, S0}, {P}}, {F32({})}), Attrs(MeanAttrs{64}));

  LossGradAttrs attrs{.loss = Loss::kMse};
  const Node& grad = *graph.Add(OpKind::kLossGrad, {z, labels}, attrs).node;
  attrs.rows = 6;
  EXPECT_EQ(
      LocalAttrs(grad, {{S0, S0}, {P, S0, P}}, {F32({}), F32({2, 3}), F32({})}),
      Attrs(attrs));
}

TEST(LocalAttrsTest, ABroadcastMakesTheRowsOfItsPart) {
  Graph graph;
  const Node& node = *graph
                          .Add(OpKind::kBroadcastRows,
                               {graph.AddInput("x", F32({3}))}, RowsAttrs{6})
                          .node;
  EXPECT_EQ(LocalAttrs(node, {{R}, {S0}}, {F32({2, 3})}), Attrs(RowsAttrs{2}));
  EXPECT_EQ(LocalAttrs(node, {{S0}, {S1}}, {F32({6, 1})}), Attrs(RowsAttrs{6}));
}

// A worker's rows are cut again into tiles.
TEST(LocalAttrsTest, PartsOfPartsAddUp) {
  Graph graph;
  const Value z = graph.AddInput("z", F32({9, 2}));
  const Value t = graph.AddInput("t", F32({9, 2}));
  const Node& whole = *graph.Add(OpKind::kMseGrad, {z, t}).node;
  const Strategy rows{{S0, S0}, {S0}};
  const Attrs part = LocalAttrs(whole, rows, {F32({6, 2})});
  const Value z6 = graph.AddInput("z6", F32({6, 2}));
  const Node& worker = *graph.Add(OpKind::kMseGrad, {z6, z6}, part).node;
  EXPECT_EQ(LocalAttrs(worker, rows, {F32({2, 2})}), Attrs(MeanAttrs{9}));
  EXPECT_EQ(Difference(worker, {Tensor(12, 3), Tensor(12, 1)}, rows, 3), "");
}

// ---- the lists, for reading ------------------------------------------------

TEST(OpPartitionTest, LeavesAreSplitOnEachAxis) {
  EXPECT_THAT(StrategiesOf("%x = input f32[]"),
              ElementsAre("() -> replicated"));
  EXPECT_THAT(
      StrategiesOf("%w = param f32[5,3]"),
      ElementsAre("() -> replicated", "() -> split(0)", "() -> split(1)"));
}

TEST(OpPartitionTest, AMatMulIsSplitByRowsColumnsOrItsInnerSize) {
  EXPECT_THAT(StrategiesOf(R"(
    %a = input f32[7,5]
    %b = input f32[3,7]
    %c = param f32[5,3]
    %0 = matmul(%a, %b, %c) {trans_a=true, trans_b=true, accumulate=true} : f32[5,3])"),
              ElementsAre("(replicated, replicated, replicated) -> replicated",
                          "(split(1), replicated, split(0)) -> split(0)",
                          "(replicated, split(0), split(1)) -> split(1)",
                          "(split(0), split(1), partial) -> partial",
                          "(partial, replicated, partial) -> partial",
                          "(replicated, partial, partial) -> partial"));
}

TEST(OpPartitionTest, AMatMulWithAnActivationIsNoSum) {
  EXPECT_THAT(StrategiesOf(R"(
    %a = input f32[5,7]
    %b = input f32[7,3]
    %bias = param f32[3]
    %0 = matmul(%a, %b, %bias) {bias=true, activation=relu} : f32[5,3])"),
              ElementsAre("(replicated, replicated, replicated) -> replicated",
                          "(split(0), replicated, replicated) -> split(0)",
                          "(replicated, split(1), split(0)) -> split(1)"));
}

TEST(OpPartitionTest, ALossGradIsSplitByTheRowsOfItsBatch) {
  EXPECT_THAT(StrategiesOf(R"(
    %z = input f32[5,3]
    %labels = input i32[60]
    %indices = input i32[5]
    %lr = input f32[]
    %b = param f32[3]
    %0:4 = loss_grad(%z, %labels, %indices, %lr, %b) {gather=true, scaled=true, bias=update} : f32[], f32[5,3], f32[], f32[3])")
                  [1],
              "(split(0), replicated, split(0), replicated, partial) -> "
              "partial, split(0), partial, partial");
}

TEST(OpPartitionTest, AnActivationGradSumsItsBiasOverRows) {
  EXPECT_THAT(
      StrategiesOf(R"(
    %y = input f32[5,3]
    %dy = input f32[5,3]
    %b = param f32[3]
    %0:2 = activation_grad(%y, %dy, %b) {activation=tanh, bias=update} : f32[5,3], f32[3])"),
      ElementsAre("(replicated, replicated, replicated) -> "
                  "replicated, replicated",
                  "(split(0), split(0), partial) -> split(0), partial",
                  "(split(1), split(1), split(0)) -> split(1), split(0)",
                  "(replicated, partial, partial) -> partial, partial"));
}

TEST(OpPartitionTest, AnUpdateIsSplitWithItsState) {
  EXPECT_THAT(StrategiesOf(R"(
    %w = param f32[5]
    %dw = input f32[5]
    %v = param f32[5]
    %lr = input f32[]
    %0:2 = momentum_update(%w, %dw, %v, %lr) : f32[5], f32[5])"),
              ElementsAre("(replicated, replicated, replicated, replicated) -> "
                          "replicated, replicated",
                          "(split(0), split(0), split(0), replicated) -> "
                          "split(0), split(0)"));
}

TEST(OpPartitionTest, ASliceIsNotSplitOnTheAxisItCuts) {
  EXPECT_THAT(StrategiesOf(R"(
    %x = input f32[5,3]
    %0 = slice(%x) {begin=1, size=2} : f32[2,3])"),
              ElementsAre("(replicated) -> replicated",
                          "(split(1)) -> split(1)", "(partial) -> partial"));
}

TEST(OpPartitionTest, AnExchangeIsNotPartitioned) {
  EXPECT_THAT(StrategiesOf(R"(
    %x = input f32[5,3]
    %0 = exchange(%x) {workers=2} : f32[5,3])"),
              ElementsAre("(replicated) -> replicated"));
}

}  // namespace
}  // namespace onestep
