// SPDX-License-Identifier: Apache-2.0
// The graph of a step before and after fusion, for people.
#ifndef ONESTEP_TRAINER_REPORT_GRAPH_PICTURES_H_
#define ONESTEP_TRAINER_REPORT_GRAPH_PICTURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "nlohmann/json.hpp"

namespace onestep {

// What --fuse off runs of a textbook step.
absl::StatusOr<Graph> UnfusedGraph(
    Graph textbook, const std::vector<std::string>& disabled_passes);

// Nodes that compute: no leaves, no constants.
int64_t CountOps(const Graph& graph);

// Both graphs as SVG with a numbered frame, the same in both, around the ops
// that became one:
//   {"before": "<svg ...", "after": "<svg ...", "note": "",
//    "unfused_ops": 24, "fused_steps": 8,
//    "groups": [{"name": "matmul", "from": "matmul + add_bias + relu"}, ...],
//    "steps": [{"op": "matmul", "unfused": [4, 5, 6]}, ...]}
// A group is made `from` ops that stand in the graph before. A step's `unfused`
// are the positions among the unfused ops of those it does. Without pictures,
// which the program `dot` draws, they are null and the note says why. REQUIRES:
// `compiled` was made of `textbook`, with fusion.
absl::StatusOr<nlohmann::ordered_json> GraphPictures(
    Graph textbook, const Compiled& compiled,
    const std::vector<std::string>& disabled_passes,
    const std::string& dot = "dot");

}  // namespace onestep

#endif  // ONESTEP_TRAINER_REPORT_GRAPH_PICTURES_H_
