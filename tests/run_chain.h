// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TESTS_RUN_CHAIN_H_
#define ONESTEP_TESTS_RUN_CHAIN_H_

#include "absl/status/statusor.h"
#include "compiler/lower/lower.h"
#include "tests/oracle.h"

namespace onestep {

// What Evaluate gives, but computed by a chain: lowers a copy of `graph`, runs
// one step on `bindings` (rounded to the leaves' dtypes) and reads back the
// results and the updated params.
absl::StatusOr<TensorMap> RunChain(const Graph& graph,
                                   const TensorMap& bindings,
                                   KernelChoice choice, int threads);

// The same of an executable that was made of `graph`: binds everything, runs
// `steps` steps. Values of many models are as they lie in memory.
absl::StatusOr<TensorMap> RunExecutable(Executable& executable,
                                        const Graph& graph,
                                        const TensorMap& bindings,
                                        int64_t steps = 1);

// `bindings` as the leaves' dtypes store them, so that the oracle and a chain
// start from the same numbers.
TensorMap RoundToLeaves(const Graph& graph, TensorMap bindings);

// Normalised mean squared error: sum (x - y)^2 / sum y^2, where y is expected;
// the plain sum when y is all zero. Infinity when a value of x is not finite
// where y is.
double Nmse(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace onestep

#endif  // ONESTEP_TESTS_RUN_CHAIN_H_
