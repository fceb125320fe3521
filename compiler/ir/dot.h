// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_IR_DOT_H_
#define ONESTEP_COMPILER_IR_DOT_H_

#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace onestep {

// Nodes that are drawn in one frame; a node of two groups is in the first.
struct DotGroup {
  std::string label;
  std::vector<const Node*> nodes;
};

// The graph for Graphviz: a box per node coloured by phase, edges labelled
// with the value's type, an ellipse per use of a param or input; a fused node
// lists the ops it was made from. For style sheets SVG keeps the classes
// `leaf`, `output`, the phase of a box, and `group0` ... of a frame.
std::string PrintDot(const Graph& graph,
                     const std::vector<DotGroup>& groups = {});

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_DOT_H_
