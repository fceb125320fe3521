// SPDX-License-Identifier: Apache-2.0
// What the verbs that read word vectors have in common.
#ifndef ONESTEP_TRAINER_WORD2VEC_SHOW_WORDS_H_
#define ONESTEP_TRAINER_WORD2VEC_SHOW_WORDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "trainer/config.h"
#include "trainer/word2vec/word_space.h"

namespace onestep {

// The config's MODEL. A notice says how many of its rows were left out, if any.
// Errors as ReadVectors.
absl::StatusOr<WordSpace> LoadWordSpace(const Config& config);

// [{"word": ..., "cosine": ...}].
nlohmann::ordered_json NeighboursToJson(
    const WordSpace& space, const std::vector<Neighbour>& neighbours);

// A line each, indented by two: the cosine, the word.
std::string NeighbourTable(const WordSpace& space,
                           const std::vector<Neighbour>& neighbours);

// In one line; bytes that are not UTF-8 become U+FFFD.
std::string JsonLine(const nlohmann::ordered_json& json);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_SHOW_WORDS_H_
