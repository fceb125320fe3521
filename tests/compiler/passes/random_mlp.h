// SPDX-License-Identifier: Apache-2.0
// Random train steps, with values to run them on.
#ifndef ONESTEP_TESTS_COMPILER_PASSES_RANDOM_MLP_H_
#define ONESTEP_TESTS_COMPILER_PASSES_RANDOM_MLP_H_

#include <cmath>
#include <cstdint>
#include <random>

#include "compiler/ir/graph.h"
#include "tests/compiler/passes/mlp_graph.h"
#include "tests/oracle.h"

namespace onestep {

// Portable draws for tests.
class MlpRandom {
 public:
  explicit MlpRandom(uint64_t seed) : engine_(seed) {}
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n));
  }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  // In [-1, 1).
  double Uniform() {
    return std::ldexp(static_cast<double>(engine_() >> 11), -52) - 1;
  }

 private:
  std::mt19937_64 engine_;
};

struct RandomMlp {
  MlpSpec spec;
  Graph graph;  // textbook; half of the time in another legal order
  TensorMap bindings;
};

// Depth 0 to 4, widths 1 to 9, batch 1 to 7, any activation, loss and
// optimizer, at times weight decay, shared weights, residual adds or a further
// use of a value that a fusion wants.
RandomMlp MakeRandomMlp(MlpRandom& random);

}  // namespace onestep

#endif  // ONESTEP_TESTS_COMPILER_PASSES_RANDOM_MLP_H_
