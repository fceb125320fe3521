// SPDX-License-Identifier: Apache-2.0
// One table of cases for every op, run on every backend against the oracle.
#ifndef ONESTEP_TESTS_KERNELS_OP_CASES_H_
#define ONESTEP_TESTS_KERNELS_OP_CASES_H_

#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "tests/oracle.h"

namespace onestep {

struct OpCase {
  std::string name;  // "matmul f32[7,17] ..."
  OpKind op;
  Graph graph;
  TensorMap bindings;  // rounded to the leaves' dtypes
};

// The sizes every op is tried on: below, at and above a vector's width.
inline const std::vector<int64_t> kOddSizes = {1, 2, 3, 7, 17, 127, 129};

// Calls `fn` with each case; cases are made one at a time.
void ForEachOpCase(const std::function<void(const OpCase&)>& fn);

}  // namespace onestep

#endif  // ONESTEP_TESTS_KERNELS_OP_CASES_H_
