// SPDX-License-Identifier: Apache-2.0
// A window's op makes many steps in one call: what these leave in memory is
// what as many calls do.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "compiler/lower/lower.h"
#include "runtime/base/status.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

constexpr int kSteps = 3;

// By name, as bits.
using Memory = std::map<std::string, std::vector<int32_t>>;

// Values of kSteps steps; all indices are rows of the tables.
Memory RandomMemory(const Graph& graph) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Memory memory;
  for (const auto& node : graph.nodes()) {
    if (!node->def().Has(kLeaf)) continue;
    const TensorType& type = node->types[0];
    std::vector<int32_t>& words = memory[node->name()];
    words.resize(kSteps * type.num_elements());
    for (int32_t& word : words) {
      word = type.dtype == DType::kI32
                 ? static_cast<int32_t>(random() % 5)
                 : std::bit_cast<int32_t>(uniform(random));
    }
  }
  for (const Output& out : graph.outputs()) {
    memory[out.name].resize(kSteps * out.value.type().num_elements());
  }
  return memory;
}

// What kSteps steps leave, `together` in each Run. Values advance where they
// are among `streams`, by whole ones.
absl::StatusOr<Memory> RunSteps(const std::string& text,
                                const std::set<std::string>& streams,
                                int together) {
  ASSIGN_OR_RETURN(Graph graph, ParseGraph(text));
  Memory memory = RandomMemory(graph);
  ASSIGN_OR_RETURN(const auto chain,
                   LowerToChain(graph, KernelChoice::kLoops, 1));
  for (auto& [name, words] : memory) {
    const int64_t bytes = std::ssize(words) * 4 / kSteps;
    RETURN_IF_ERROR(
        chain->Bind(name, words.data(), streams.contains(name) ? bytes : 0));
  }
  for (int done = 0; done < kSteps; done += together) {
    RETURN_IF_ERROR(chain->Run(together));
  }
  return memory;
}

void ExpectSame(const std::string& text, const std::set<std::string>& streams) {
  ASSERT_OK_AND_ASSIGN(const Memory want, RunSteps(text, streams, 1));
  ASSERT_OK_AND_ASSIGN(const Memory got, RunSteps(text, streams, kSteps));
  EXPECT_EQ(got, want);
}

constexpr char kLeaves[] = R"(graph {
  %in = param f32[5,3]
  %out = param f32[5,3]
  %c = input i32[4]
  %mask = input f32[4]
  %mean = input f32[1,4]
  %spread = input f32[1,4]
  %n = input i32[7]
  %w = input f32[1,7]
  %y = input f32[1,7]
  %lr = input f32[]
)";
constexpr char kSkipGram[] =
    "%0:3 = sgns_window(%in, %out, %c, %mask, %n, %w, %lr) {positives=1}";
constexpr char kHs[] =
    "%0:3 = sgns_window(%in, %out, %c, %mask, %n, %w, %y, %lr)";
constexpr char kCbow[] =
    "%0:3 = cbow_window(%in, %out, %c, %mean, %spread, %n, %w, %lr) "
    "{positives=1}";
constexpr char kInPlace[] = "update in = %0#1\nupdate out = %0#2\n";

std::string Text(const std::string& window, const std::string& tables) {
  return kLeaves + window + " : f32[], f32[5,3], f32[5,3] @update\n" +
         "result loss = %0\n" + tables + "}\n";
}

const std::set<std::string> kStreams = {"c", "mask", "mean", "spread", "n",
                                        "w", "y",    "lr",   "loss"};

TEST(WindowLoweringTest, StepsOverStreamsAreThoseOfSingleRuns) {
  for (const char* window : {kSkipGram, kHs, kCbow}) {
    SCOPED_TRACE(window);
    ExpectSame(Text(window, kInPlace), kStreams);
  }
}

TEST(WindowLoweringTest, AnyValueMayBeThatOfAllSteps) {
  for (const std::string& name : kStreams) {
    SCOPED_TRACE(name);
    std::set<std::string> streams = kStreams;
    streams.erase(name);
    for (const char* window : {kSkipGram, kHs, kCbow}) {
      ExpectSame(Text(window, kInPlace), streams);
    }
  }
}

TEST(WindowLoweringTest, TablesThatAreResultsAreThoseOfTheLastStepAlone) {
  ExpectSame(Text(kSkipGram, "result in1 = %0#1\nresult out1 = %0#2\n"),
             kStreams);
  ExpectSame(Text(kSkipGram, "result in1 = %0#1\nupdate out = %0#2\n"),
             kStreams);
}

TEST(WindowLoweringTest, EachStepMayHaveTablesOfItsOwn) {
  for (const char* table : {"in", "out"}) {
    std::set<std::string> streams = kStreams;
    streams.insert(table);
    ExpectSame(Text(kSkipGram, kInPlace), streams);
  }
}

}  // namespace
}  // namespace onestep
