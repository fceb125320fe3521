// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/show_words.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status.h"
#include "trainer/console.h"
#include "trainer/json_text.h"
#include "trainer/numbers.h"
#include "trainer/word2vec/vectors_file.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

absl::StatusOr<WordSpace> LoadWordSpace(const Config& config) {
  const int threads = config.compile.threads;
  ASSIGN_OR_RETURN(WordVectors vectors,
                   ReadVectors(config.model_file, threads));
  if (vectors.repeated > 0) {
    Console::Notice(absl::StrCat(vectors.path, ": ", vectors.repeated,
                                 " rows are left out, as their word has one "
                                 "before them"));
  }
  return WordSpace(std::move(vectors), threads);
}

Json NeighboursToJson(const WordSpace& space,
                      const std::vector<Neighbour>& neighbours) {
  Json list = Json::array();
  for (const Neighbour& n : neighbours) {
    list.push_back(
        {{"word", space.word(n.word)}, {"cosine", AsWritten(n.cosine)}});
  }
  return list;
}

std::string NeighbourTable(const WordSpace& space,
                           const std::vector<Neighbour>& neighbours) {
  std::string table;
  for (const Neighbour& n : neighbours) {
    absl::StrAppendFormat(&table, "  %7.4f  %s\n", n.cosine,
                          std::string(space.word(n.word)));
  }
  return table;
}

std::string JsonLine(const Json& json) {
  return absl::StrCat(JsonText(json), "\n");
}

}  // namespace onestep
