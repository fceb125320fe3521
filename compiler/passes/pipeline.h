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

// The sparsity of the u8 table from which the graph gathers its batches.
struct SparseInput {
  int64_t nonzeros = 0;  // nonzero values of the table; 0: use dense products
};

// The model axis that the pass `vectorize` adds.
struct Vectorize {
  int64_t models = 0;  // number of models; 0: no model axis
  // The inputs that have one value per model. Params always have one.
  std::vector<std::string> inputs = {"lr"};
};

// The arguments of a pass: the graph that it changes, the rewrites that it
// refuses, with reasons, and options.
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

// All passes in the order in which they run. Names are unique.
const std::vector<Pass>& AllPasses();

// Returns InvalidArgument for the first name that is not a pass, with the most
// similar name.
absl::Status CheckPassNames(const std::vector<std::string>& names);

struct PipelineOptions {
  bool fuse = true;
  std::vector<std::string> disabled = {};  // names of passes
  bool keep_text = false;  // fill PassRecord::before and PassRecord::after
  // An existing folder. Each pass that changed the graph or refused a rewrite
  // writes a file such as "03-cse.txt" there; "": no files.
  std::string dump_dir = {};
  // Check the returned `changed` of each pass against the text before and
  // after.
  bool check_reports = false;
  SparseInput sparse = {};   // for sparse-input
  Vectorize vectorize = {};  // for vectorize
};

// The record of one pass in one run of the pipeline.
struct PassRecord {
  std::string name;
  bool ran = false;  // false when disabled, or a fusion with fusion off
  bool changed = false;
  int64_t begin_ns = 0;  // time of NowNs
  double ms = 0;
  int nodes_before = 0;
  int nodes_after = 0;
  std::vector<std::string> refusals;
  std::string before, after;  // text forms, with keep_text
};

// Numbers the nodes (see Node::origins), runs the passes in order and verifies
// the graph after each. Returns InvalidArgument for an unknown name in
// `disabled`; Internal ("after pass dce: ...") when a pass left an invalid
// graph or returned a wrong `changed`; FailedPrecondition when a dump cannot be
// written.
absl::StatusOr<std::vector<PassRecord>> RunPipeline(
    Graph& graph, const PipelineOptions& options);

// Runs these passes instead of AllPasses(); for tests.
absl::StatusOr<std::vector<PassRecord>> RunPipeline(
    Graph& graph, const PipelineOptions& options,
    const std::vector<Pass>& passes);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_PASSES_PIPELINE_H_
