// SPDX-License-Identifier: Apache-2.0
// The flags of the verbs that read word vectors: nearest, analogy,
// word2vec-eval.
#ifndef ONESTEP_TRAINER_VECTORS_FLAGS_H_
#define ONESTEP_TRAINER_VECTORS_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "trainer/config.h"
#include "trainer/flag_set.h"

namespace onestep {

bool UsesVectors(Verb verb);

// For such a verb; `words` takes MODEL and what follows it.
void AddVectors(Config& config, FlagSet& flags,
                std::vector<std::string>* words);

// Of such a verb, else nothing: MODEL and the words to where they belong.
// InvalidArgument says what is missing or too much.
absl::Status SettleVectors(Config& config, std::vector<std::string> words);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_VECTORS_FLAGS_H_
