// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_GRAPH_REPORT_H_
#define ONESTEP_TRAINER_GRAPH_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler/compiler.h"

namespace onestep {

// What the compiler did, for people to read: `before`, the graph before the
// passes; a line per pass, with what it refused and, where it changed the
// graph, the graph it left; the memory plan; the steps that run. The last line
// is "unfused: 24 ops -> fused: 8 steps", with `unfused_ops` and, for the
// right side, `title`.
// REQUIRES: compiled with keep_text.
std::string GraphReport(const std::string& before, const Compiled& compiled,
                        int64_t unfused_ops, absl::string_view title);

// Writes the planned CUDA graph to `file`, for Graphviz, and, where a GPU is,
// CUDA's own drawing to `file`.cuda. Nothing when `file` is "".
// REQUIRES: else the step is one for a GPU.
absl::Status WriteCudaGraph(const std::string& file, const Compiled& compiled);

// The passes alone, a paragraph each.
std::string PassesText(const std::vector<PassRecord>& passes);

// The steps alone: a line each, and indented below it the shapes and what the
// step was fused from.
std::string StepsText(const std::vector<StepInfo>& steps);

// The graph as it runs and the steps it became: graph.txt of --out.
std::string GraphText(const Compiled& compiled);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_GRAPH_REPORT_H_
