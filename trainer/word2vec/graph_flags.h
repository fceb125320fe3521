// SPDX-License-Identifier: Apache-2.0
// The flags by which the verb graph shows a step of word2vec.
#ifndef ONESTEP_TRAINER_WORD2VEC_GRAPH_FLAGS_H_
#define ONESTEP_TRAINER_WORD2VEC_GRAPH_FLAGS_H_

#include "absl/status/status.h"
#include "trainer/config.h"
#include "trainer/flag_set.h"
#include "trainer/word2vec/window_graph.h"

namespace onestep {

void AddWindowGraph(Config& config, FlagSet& flags);

// InvalidArgument: a flag that says nothing with this --word2vec, of a window's
// sizes or of a net.
absl::Status CheckWindowGraph(const Config& config, const FlagSet& flags);

// The step that the flags ask for. REQUIRES: not WindowModel::kNone.
WindowSpec WindowOf(const Config& config);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_GRAPH_FLAGS_H_
