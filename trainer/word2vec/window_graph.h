// SPDX-License-Identifier: Apache-2.0
// The textbook train step of word2vec on one window: C rows of the table `in`
// against N rows of the table `out`, by binary cross-entropy of their dot
// products and plain SGD.
//
// Leaves of the graph, by name:
//   in f32[in_rows,cols], out f32[out_rows,cols]                    params
//   contexts i32[C], outputs i32[N]                                 rows
//   context_mask f32[C]                       skip-gram: weights of contexts
//   context_mean, context_spread f32[1,C]     cbow: see below
//   output_weights f32[1,N], labels f32[1,N]  (hs only) of outputs
//   lr f32[]
// Result: loss f32[], the sum over the window's pairs. A row may be named more
// than once: what is added to it adds up.
#ifndef ONESTEP_TRAINER_WORD2VEC_WINDOW_GRAPH_H_
#define ONESTEP_TRAINER_WORD2VEC_WINDOW_GRAPH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "compiler/compiler.h"

namespace onestep {

struct WindowSpec {
  // The contexts' rows, weighted by context_mean, are one row h; the error of h
  // times context_spread[c] is added to context c. word2vec spreads it whole
  // (1); the gradient of the loss is spread as the mean is taken (1/C).
  // Otherwise every context is a row by itself.
  bool cbow = false;
  // Outputs are the nodes of a Huffman path, with labels; otherwise the first
  // is the word and the others are negatives.
  bool hs = false;
  int64_t in_rows = 0, out_rows = 0, cols = 0;
  int64_t contexts = 0, outputs = 0;  // C and N
};

// REQUIRES: sizes from 1.
absl::StatusOr<Graph> BuildWindowStep(const WindowSpec& spec);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_WINDOW_GRAPH_H_
