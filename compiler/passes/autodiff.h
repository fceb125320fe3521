// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_PASSES_AUTODIFF_H_
#define ONESTEP_COMPILER_PASSES_AUTODIFF_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace onestep {

// Appends the reverse sweep from the scalar `y` (f32[]) and gives the
// gradient of y with respect to each of `xs`, in order. Only nodes on a path
// from an x to y are differentiated. New nodes have phase kBackward; the
// graph's own phase is restored. An x that y does not depend on gets a
// constant 0 of its type. Unimplemented names an op on the path that has no
// gradient; InvalidArgument: y is no f32[], or an x is not f32.
absl::StatusOr<std::vector<Value>> Gradients(Graph& graph, Value y,
                                             const std::vector<Value>& xs);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_PASSES_AUTODIFF_H_
