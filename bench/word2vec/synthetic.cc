// SPDX-License-Identifier: Apache-2.0
// word2vec_synthetic --tokens N --out DIR [--seed S] writes a text with planted
// similarities, DIR/corpus.txt, and what a model of it should know:
// DIR/pairs.tsv and DIR/questions.txt.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "CLI/CLI.hpp"
#include "runtime/base/status.h"
#include "trainer/atomic_file.h"
#include "trainer/word2vec/synthetic_corpus.h"

namespace onestep {
namespace {

absl::Status Write(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.Write(text);
  return file.Commit();
}

absl::Status WriteAll(const std::string& dir, int64_t tokens, uint64_t seed) {
  std::error_code error;  // which the first write says
  std::filesystem::create_directories(dir, error);
  RETURN_IF_ERROR(WriteSyntheticCorpus(dir + "/corpus.txt", tokens, seed));
  RETURN_IF_ERROR(Write(dir + "/pairs.tsv", SyntheticPairs(tokens, seed)));
  return Write(dir + "/questions.txt", SyntheticQuestions(tokens, seed));
}

}  // namespace
}  // namespace onestep

int main(int argc, char** argv) {
  CLI::App app("Writes a text with planted similarities.");
  int64_t tokens = 6'000'000;
  uint64_t seed = 1;
  std::string dir;
  app.add_option("--tokens", tokens, "Tokens of the text")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", seed, "Seed")->capture_default_str();
  app.add_option("--out", dir, "Folder to write to")->required();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = onestep::WriteAll(dir, tokens, seed);
  if (status.ok()) return 0;
  std::fprintf(stderr, "word2vec_synthetic: %s\n",
               std::string(status.message()).c_str());
  return 1;
}
