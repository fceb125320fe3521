// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_IR_DOT_H_
#define ONESTEP_COMPILER_IR_DOT_H_

#include <string>

#include "compiler/ir/graph.h"

namespace onestep {

// The graph for Graphviz: a box per node coloured by phase, edges labelled
// with the value's type, params and inputs as ellipses; a fused node lists the
// ops it was made from.
std::string PrintDot(const Graph& graph);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_DOT_H_
