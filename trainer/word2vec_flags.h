// SPDX-License-Identifier: Apache-2.0
// The flags of the verb word2vec alone.
#ifndef ONESTEP_TRAINER_WORD2VEC_FLAGS_H_
#define ONESTEP_TRAINER_WORD2VEC_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "trainer/config.h"
#include "trainer/flag_set.h"

namespace onestep {

// Corpus, model, training and output; `files` takes CORPUS.
void AddWord2vec(Config& config, FlagSet& flags,
                 std::vector<std::string>* files);

// Of the verb word2vec, else nothing. InvalidArgument: no CORPUS or more than
// one; a flag that says nothing beside the others.
absl::Status SettleWord2vec(Config& config, const FlagSet& flags,
                            const std::vector<std::string>& files);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_FLAGS_H_
