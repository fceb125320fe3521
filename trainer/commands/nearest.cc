// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "trainer/commands/commands.h"
#include "trainer/word2vec/show_words.h"
#include "trainer/word2vec/word_space.h"

namespace onestep {

absl::Status RunNearest(const Config& config, Console& console) {
  ASSIGN_OR_RETURN(const WordSpace space, LoadWordSpace(config));
  std::vector<Direction> directions;
  for (const std::string& word : config.words) {
    ASSIGN_OR_RETURN(const int64_t id, space.Find(word));
    directions.push_back({{id}, {}});
  }
  ASSIGN_OR_RETURN(const auto nearest,
                   space.Nearest(directions, config.top, space.size()));
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < config.words.size(); ++i) {
    if (config.json) {
      list.push_back({{"word", config.words[i]},
                      {"nearest", NeighboursToJson(space, nearest[i])}});
    } else {
      console.Print(absl::StrCat(i == 0 ? "" : "\n", config.words[i], "\n",
                                 NeighbourTable(space, nearest[i])));
    }
  }
  if (config.json) {
    console.Print(JsonLine(
        {{"model_file", space.vectors().path}, {"words", std::move(list)}}));
  }
  return absl::OkStatus();
}

}  // namespace onestep
