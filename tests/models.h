// SPDX-License-Identifier: Apache-2.0
// For tests of graphs of many models against those of each alone.
#ifndef ONESTEP_TESTS_MODELS_H_
#define ONESTEP_TESTS_MODELS_H_

#include <cstddef>
#include <vector>

#include "compiler/ir/graph.h"
#include "tests/oracle.h"

namespace onestep {

// The bindings of `graph`, which has as many models, from those of each: per
// model and innermost where the leaf is, else those of the first.
TensorMap Interleave(const Graph& graph, const std::vector<TensorMap>& models);

// Equal bits, or NaN both.
bool SameBits(double a, double b);

// Expects the values of model k of `models` in `all` to be those of `want`, bit
// for bit. What all share has to equal what it is alone.
void ExpectModel(const TensorMap& all, size_t models, size_t k,
                 const TensorMap& want);

}  // namespace onestep

#endif  // ONESTEP_TESTS_MODELS_H_
