// SPDX-License-Identifier: Apache-2.0
// word2vec_files VECTORS --folder DIR [--threads N] [--against FILE...] times
// how long a file of word vectors takes to save and to load, as text and as
// binary, and tells whether all bits are still there; the --against files are
// other programs'. Prints one JSON object, as gensim_peer.py does.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "trainer/word2vec/vectors_file.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string vectors, folder;
  std::vector<std::string> against;
  int threads = 1;
};

bool Same(const WordVectors& a, const WordVectors& b) {
  if (a.size() != b.size() || a.dim != b.dim) return false;
  for (int64_t id = 0; id < a.size(); ++id) {
    if (a.words[id] != b.words[id]) return false;
  }
  return std::memcmp(a.row(0), b.row(0), a.size() * a.dim * sizeof(float)) == 0;
}

double SecondsSince(int64_t begin_ns) {
  return static_cast<double>(NowNs() - begin_ns) * 1e-9;
}

absl::StatusOr<Json> TimeFile(const WordVectors& vectors, bool text,
                              const Flags& flags) {
  const std::string path =
      flags.folder + (text ? "/onestep.text" : "/onestep.binary");
  const int64_t save = NowNs();
  RETURN_IF_ERROR(text ? WriteVectorsText(path, vectors.View(), flags.threads)
                       : WriteVectorsBinary(path, vectors.View()));
  const double save_seconds = SecondsSince(save);
  const int64_t load = NowNs();
  ASSIGN_OR_RETURN(const WordVectors again, ReadVectors(path, flags.threads));
  return Json{{"save_seconds", save_seconds},
              {"load_seconds", SecondsSince(load)},
              {"same", Same(vectors, again)}};
}

absl::StatusOr<Json> TimeFiles(const Flags& flags) {
  ASSIGN_OR_RETURN(const WordVectors vectors,
                   ReadVectors(flags.vectors, flags.threads));
  Json json;
  ASSIGN_OR_RETURN(json["text"], TimeFile(vectors, /*text=*/true, flags));
  ASSIGN_OR_RETURN(json["binary"], TimeFile(vectors, /*text=*/false, flags));
  json["against"] = Json::object();
  for (const std::string& path : flags.against) {
    ASSIGN_OR_RETURN(const WordVectors other, ReadVectors(path, flags.threads));
    json["against"][path] = Same(vectors, other);
  }
  return json;
}

}  // namespace
}  // namespace onestep

int main(int argc, char** argv) {
  CLI::App app("Times saving and loading word vectors.");
  onestep::Flags flags;
  app.add_option("vectors", flags.vectors, "A file of word vectors")
      ->required();
  app.add_option("--folder", flags.folder, "Where to write")->required();
  app.add_option("--threads", flags.threads, "For text")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--against", flags.against, "Files to compare, by their bits");
  CLI11_PARSE(app, argc, argv);
  const auto json = onestep::TimeFiles(flags);
  if (json.ok()) {
    std::puts(json->dump().c_str());
    return 0;
  }
  std::fprintf(stderr, "word2vec_files: %s\n",
               std::string(json.status().message()).c_str());
  return 1;
}
