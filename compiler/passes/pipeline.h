// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_PASSES_PIPELINE_H_
#define ONESTEP_COMPILER_PASSES_PIPELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/graph.h"

namespace onestep {

// What is known of the u8 table that the graph gathers its rows from.
struct SparseInput {
  int64_t nonzeros = 0;  // of its values; 0: it is to be read dense
};

// Into a graph of how many models, and which inputs then differ between them;
// its params all do.
struct Vectorize {
  int64_t models = 0;  // 0: it stays the graph of one
  std::vector<std::string> inputs = {"lr"};
};

// What a pass is given: the graph it changes and the place where it says
// which fusion it refused and why.
struct PassContext {
  Graph& graph;
  // "fuse %7: second use of %6 by gelu_grad"
  std::vector<std::string> refusals;
  SparseInput sparse = {};
  Vectorize vectorize = {};

  void Refuse(std::string reason) { refusals.push_back(std::move(reason)); }
};

struct Pass {
  const char* name;  // kebab-case, as in --disable-pass
  // True only when the graph changed. A pass has no state.
  absl::StatusOr<bool> (*run)(PassContext&);
  bool fusion;  // runs only when fusion is on
};

// All passes in the order they run; each name is there once.
const std::vector<Pass>& AllPasses();

// InvalidArgument for the first name that is no pass, with the nearest one.
absl::Status CheckPassNames(const std::vector<std::string>& names);

struct PipelineOptions {
  bool fuse = true;
  std::vector<std::string> disabled = {};  // names of passes
  bool keep_text = false;                  // fill before and after
  // Existing folder: "03-cse.txt" per pass that changed the graph or refused.
  std::string dump_dir = {};
  // Compare what a pass reports with the text before and after.
  bool check_reports = false;
  SparseInput sparse = {};   // for sparse-input
  Vectorize vectorize = {};  // for vectorize
};

// One pass of one run.
struct PassRecord {
  std::string name;
  bool ran = false;  // false: disabled, or a fusion with fusion off
  bool changed = false;
  int64_t begin_ns = 0;  // by NowNs
  double ms = 0;
  int nodes_before = 0;
  int nodes_after = 0;
  std::vector<std::string> refusals;
  std::string before, after;  // text forms, with keep_text
};

// Numbers the nodes, see origins, and runs the passes; verifies the graph after
// each. InvalidArgument for an unknown name in `disabled`, naming the nearest;
// Internal "after pass dce: ..." when a pass broke the graph or did not tell
// the truth about `changed`; FailedPrecondition when a dump cannot be written.
absl::StatusOr<std::vector<PassRecord>> RunPipeline(
    Graph& graph, const PipelineOptions& options);

// The same with these passes in place of AllPasses(); for tests.
absl::StatusOr<std::vector<PassRecord>> RunPipeline(
    Graph& graph, const PipelineOptions& options,
    const std::vector<Pass>& passes);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_PASSES_PIPELINE_H_
