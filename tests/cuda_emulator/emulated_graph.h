// SPDX-License-Identifier: Apache-2.0
// Graphs of EmulatedCuda: what they hold and how they run.
#ifndef ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_GRAPH_H_
#define ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_GRAPH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace onestep {

using EmulatedRandom = std::mt19937_64;

// One thing that a stream or a graph does.
struct EmulatedWork {
  std::string kind = "";  // "kernel", "memcpy", "memset"
  std::string name = "";  // of a kernel
  bool waits = false;     // a kernel that may have programmatic edges
  std::function<absl::Status(uint64_t seed)> run = {};
  // Addresses it uses: of a kernel, all words of its arguments, since which of
  // them are addresses is not known.
  std::vector<uintptr_t> addresses = {};
};

struct EmulatedGraph;

struct EmulatedNode {
  struct Edge {
    int from = 0;
    bool programmatic = false;
  };
  int64_t handle = 0;
  EmulatedWork work = {};
  std::vector<Edge> edges = {};
  // Of a child graph: what runs inside, with null `work.run`.
  std::shared_ptr<EmulatedGraph> inside = {};
};

// Nodes come after those they have edges from.
struct EmulatedGraph {
  std::vector<EmulatedNode> nodes;

  std::shared_ptr<EmulatedGraph> Clone() const;
  bool Uses(uintptr_t begin, uintptr_t end) const;
  // A digraph of kinds and names; programmatic edges are dashed.
  std::string ToDot() const;
};

// A graph on its way: any node whose edges allow it is the next.
class EmulatedGraphRun {
 public:
  // REQUIRES: the graph outlives this and stays as it is.
  explicit EmulatedGraphRun(const EmulatedGraph& graph);

  bool done() const { return ready_.empty(); }
  // Runs one node, at any depth. REQUIRES: not done.
  absl::Status Step(EmulatedRandom& random,
                    absl::FunctionRef<absl::Status(const EmulatedWork&)> run);

 private:
  void Finish(int node);

  const EmulatedGraph& graph_;
  std::vector<std::vector<int>> dependents_;
  std::vector<int> waits_for_;  // edges from nodes that are not finished
  std::vector<int> ready_;      // may run, or run inside
  std::map<int, std::unique_ptr<EmulatedGraphRun>> inside_;
};

}  // namespace onestep

#endif  // ONESTEP_TESTS_CUDA_EMULATOR_EMULATED_GRAPH_H_
