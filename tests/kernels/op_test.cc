// SPDX-License-Identifier: Apache-2.0
// Every op on every kernel set of the chain against the float64 oracle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/ir/text.h"
#include "tests/kernels/op_cases.h"
#include "tests/oracle.h"
#include "tests/run_chain.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

// fp32 sums of up to 129 products of unit normals: each rounding is 6e-8
// relative, so that the squared error stays near 1e-14 of the squared norm;
// 1e-11 leaves room for cancellation and for the 1.5e-7 of erf and exp.
constexpr double kNmse = 1e-11;

void ExpectOracle(KernelChoice choice, int threads) {
  ForEachOpCase([&](const OpCase& c) {
    SCOPED_TRACE(c.name);
    ASSERT_OK_AND_ASSIGN(const TensorMap want, Evaluate(c.graph, c.bindings));
    ASSERT_OK_AND_ASSIGN(const TensorMap got,
                         RunChain(c.graph, c.bindings, choice, threads));
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, values] : want) {
      EXPECT_LE(Nmse(got.at(name), values), kNmse) << name << " of\n"
                                                   << PrintGraph(c.graph);
    }
  });
}

TEST(OpTest, LoopsEqualTheOracleOnOneThread) {
  ExpectOracle(KernelChoice::kLoops, 1);
}

TEST(OpTest, LoopsEqualTheOracleOnThreeThreads) {
  ExpectOracle(KernelChoice::kLoops, 3);
}

TEST(OpTest, OnednnEqualsTheOracleOnOneThread) {
  ExpectOracle(KernelChoice::kOnednn, 1);
}

TEST(OpTest, OnednnEqualsTheOracleOnTwoThreads) {
  ExpectOracle(KernelChoice::kOnednn, 2);
}

// Constants, exchanges and graphs of many models have tests of their own.
TEST(OpTest, EveryOpButLeavesHasACase) {
  std::set<OpKind> seen;
  ForEachOpCase([&](const OpCase& c) { seen.insert(c.op); });
  for (const OpDef& def : AllOps()) {
    if (def.Has(kLeaf) || def.kind == OpKind::kConstant ||
        def.kind == OpKind::kExchange || def.kind == OpKind::kBroadcastModels) {
      continue;
    }
    EXPECT_TRUE(seen.count(def.kind)) << def.name;
  }
}

TEST(OpTest, AConstantIsThereBeforeTheFirstStep) {
  ASSERT_OK_AND_ASSIGN(Graph graph, ParseGraph(R"(graph {
    %x = input f32[3]
    %0 = constant() {value=2.5} : f32[3]
    %1 = mul(%x, %0) : f32[3]
    result y = %1
  })"));
  ASSERT_OK_AND_ASSIGN(const TensorMap got, RunChain(graph, {{"x", {1, 2, 3}}},
                                                     KernelChoice::kLoops, 1));
  EXPECT_EQ(got.at("y"), (std::vector<double>{2.5, 5, 7.5}));
}

TEST(OpTest, AChainRefusesAnExchange) {
  ASSERT_OK_AND_ASSIGN(Graph graph, ParseGraph(R"(graph {
    %x = input f32[3]
    %0 = exchange(%x) {workers=1} : f32[3]
    result y = %0
  })"));
  EXPECT_THAT(LowerToChain(graph, KernelChoice::kBySize, 1).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       testing::HasSubstr("exchange on a chain")));
}

// Attributes of oneDNN are handles that copies share.
TEST(OpTest, AnActivationDoesNotLeakIntoTheNextPrimitive) {
  ASSERT_OK_AND_ASSIGN(Graph graph, ParseGraph(R"(graph {
    %x = input f32[2,2]
    %b = input f32[2]
    %0 = matmul(%x, %x, %b) {bias=true, activation=relu} : f32[2,2]
    %1 = matmul(%0, %x, %b) {bias=true} : f32[2,2]
    %2 = scale(%1) {alpha=2} : f32[2,2]
    result y = %2
  })"));
  const TensorMap x = {{"x", {-1, -2, -3, -4}}, {"b", {-1, -1}}};
  ASSERT_OK_AND_ASSIGN(const TensorMap want, Evaluate(graph, x));
  ASSERT_OK_AND_ASSIGN(const TensorMap got,
                       RunChain(graph, x, KernelChoice::kOnednn, 1));
  EXPECT_LT(want.at("y")[0], 0);
  EXPECT_EQ(got, want);
}

TEST(OpTest, TheLoweringNamesTheOpsThatOnednnLacks) {
  ASSERT_OK_AND_ASSIGN(Graph graph, ParseGraph(R"(graph {
    %z = input f32[3,4]
    %labels = input i32[3]
    %0 = softmax(%z) : f32[3,4]
    %1 = minus_one_hot(%0, %labels) : f32[3,4]
    result y = %1
  })"));
  ASSERT_OK_AND_ASSIGN(const auto onednn,
                       LowerToChain(graph, KernelChoice::kOnednn, 1));
  EXPECT_THAT(onednn->lowering(),
              testing::HasSubstr("1 own loops (no primitive: minus_one_hot)"));
  ASSERT_OK_AND_ASSIGN(const auto loops,
                       LowerToChain(graph, KernelChoice::kLoops, 1));
  EXPECT_THAT(loops->lowering(),
              testing::Not(testing::HasSubstr("no primitive")));
}

// What oneDNN has a primitive for, so that "one primitive per op" is no
// accident of this machine's library.
TEST(OpTest, OnednnRunsTheLargeOps) {
  std::set<OpKind> library;
  ForEachOpCase([&](const OpCase& c) {
    Graph graph = c.graph.Clone();
    ASSERT_OK_AND_ASSIGN(const auto chain,
                         LowerToChain(graph, KernelChoice::kOnednn, 1));
    if (chain->steps()[0].library) library.insert(c.op);
  });
  for (OpKind op : {OpKind::kMatMul, OpKind::kAddBias, OpKind::kActivation,
                    OpKind::kActivationGrad, OpKind::kSoftmax, OpKind::kScale,
                    OpKind::kAdd, OpKind::kSgdUpdate}) {
    EXPECT_TRUE(library.count(op)) << GetOpDef(op).name;
  }
}

}  // namespace
}  // namespace onestep
