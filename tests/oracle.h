// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TESTS_ORACLE_H_
#define ONESTEP_TESTS_ORACLE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace onestep {

// Row-major values of named tensors, of many models one after the other; labels
// and indices are doubles too.
using TensorMap = std::map<std::string, std::vector<double>>;

// Runs a graph of any ops with the loops of kernels/reference.h, in float64.
// A fused op is run as the textbook ops it stands for. `bindings` has a value
// for every input and param; names the graph does not have are ignored. Gives
// the results by name and the updates by the name of the param.
// NotFound: a leaf has no binding. InvalidArgument: a binding has the wrong
// number of elements, a result and an update have one name, or an exchange is
// between more than one worker.
// REQUIRES: labels are classes and indices are rows of their table.
absl::StatusOr<TensorMap> Evaluate(const Graph& graph,
                                   const TensorMap& bindings);

}  // namespace onestep

#endif  // ONESTEP_TESTS_ORACLE_H_
