// SPDX-License-Identifier: Apache-2.0
// Text in, one pass, text out; and what in-place updates ask of a graph.
#ifndef ONESTEP_TESTS_COMPILER_PASSES_PASS_TEST_H_
#define ONESTEP_TESTS_COMPILER_PASSES_PASS_TEST_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/pipeline.h"

namespace onestep {

struct PassResult {
  bool changed = false;
  std::string text;
  std::vector<std::string> refusals;
  Graph graph;
};

using PassFunction = absl::StatusOr<bool> (*)(PassContext&);

// Runs `pass` over the graph `text`. Fails the test when the text does not
// parse, the graph is broken after it, `changed` is not the truth, or a second
// run changes the graph again.
PassResult RunPass(PassFunction pass, absl::string_view text,
                   const SparseInput& sparse = {});

// `text` with the numbers and the layout of PrintGraph.
std::string Canonical(absl::string_view text);

// Whether every node that writes over a param comes after all other readers
// of the old value, and no output wants it.
testing::AssertionResult InPlaceLegal(const Graph& graph);

// The graph as memory sees it: nodes after one that writes over a param read
// the new value.
Graph AsRunInPlace(const Graph& graph);

}  // namespace onestep

#endif  // ONESTEP_TESTS_COMPILER_PASSES_PASS_TEST_H_
