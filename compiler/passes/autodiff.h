// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_PASSES_AUTODIFF_H_
#define ONESTEP_COMPILER_PASSES_AUTODIFF_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace onestep {

// Appends the reverse-mode gradient of the scalar `y` (f32[]) and returns dy/dx
// for each of `xs`, in order. Only nodes on a path from an x to y are
// differentiated. New nodes have phase kBackward; the graph's current phase is
// restored. For an x that y does not depend on, the gradient is a constant 0 of
// x's type. Returns Unimplemented, with the op, when an op on a path has no
// gradient, and InvalidArgument when y is not f32[] or an x is not f32.
absl::StatusOr<std::vector<Value>> Gradients(Graph& graph, Value y,
                                             const std::vector<Value>& xs);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_PASSES_AUTODIFF_H_
