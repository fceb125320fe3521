// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "trainer/commands/commands.h"
#include "trainer/word2vec/show_words.h"
#include "trainer/word2vec/word_space.h"

namespace onestep {

absl::Status RunAnalogy(const Config& config, Console& console) {
  ASSIGN_OR_RETURN(const WordSpace space, LoadWordSpace(config));
  std::vector<int64_t> ids;
  for (const std::string& word : config.words) {
    ASSIGN_OR_RETURN(ids.emplace_back(), space.Find(word));
  }
  const Direction direction{{ids[1], ids[2]}, {ids[0]}};
  ASSIGN_OR_RETURN(const auto nearest,
                   space.Nearest({direction}, config.top, space.size()));
  const std::vector<std::string>& words = config.words;
  if (config.json) {
    console.Print(JsonLine({{"model_file", space.vectors().path},
                            {"words", words},
                            {"nearest", NeighboursToJson(space, nearest[0])}}));
  } else {
    console.Print(absl::StrCat(words[0], " is to ", words[1], " as ", words[2],
                               " is to\n", NeighbourTable(space, nearest[0])));
  }
  return absl::OkStatus();
}

}  // namespace onestep
