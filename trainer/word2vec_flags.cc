// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec_flags.h"

#include <cfloat>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/status.h"
#include "trainer/numbers.h"

namespace onestep {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 48;
constexpr int64_t kMaxVocabulary = int64_t{1} << 30;
constexpr int64_t kMaxEpochs = 1'000'000;

absl::Status Refuse(const std::string& text) {
  return absl::InvalidArgumentError(text);
}

absl::StatusOr<Negatives> ParseNegatives(const std::string& text) {
  if (text == "shared") return Negatives{Negatives::kShared};
  if (text == "exact") return Negatives{Negatives::kExact};
  absl::string_view number = text;
  if (absl::ConsumePrefix(&number, "group:")) {
    ASSIGN_OR_RETURN(const int64_t n, ParseInteger(number, 1, 2 * kMaxWindow));
    return Negatives{n};
  }
  return Refuse(
      absl::StrCat("want shared, exact or group:N, got ", Quote(text)));
}

void AddCorpus(Word2vecConfig& word2vec, FlagSet& flags,
               std::vector<std::string>* files) {
  flags.Group("Corpus");
  flags.Positional(files, "CORPUS",
                   "CORPUS, a text with a sentence in each line and spaces "
                   "between words");
  flags.Integer("--min-count", &word2vec.min_count, 1, kMaxCount,
                "Leave out words that come less often");
  flags.Integer("--max-vocab", &word2vec.max_vocab, 0, kMaxVocabulary,
                "Keep so many words, the most frequent; 0: all");
  flags.Number("--sample", &word2vec.sample, 0, DBL_MAX,
               "Leave out tokens of words that are a larger share of the "
               "text, the more the larger; 0: none");
  flags.Text("--cache", "FILE", &word2vec.cache,
             "Keep the encoded corpus there for the next run");
}

void AddVectorModel(Config& config, FlagSet& flags) {
  Word2vecConfig& word2vec = config.word2vec;
  flags.Group("Model");
  flags.Integer("--size", &word2vec.size, 1, kMaxSize, "Values of a vector");
  flags.Integer("--window", &word2vec.window, 1, kMaxWindow,
                "Words on each side of a word, at most");
  flags.Value("--cbow", "0|1", "Continuous bag of words, else skip-gram [0]",
              [&word2vec](const std::string& text) -> absl::Status {
                ASSIGN_OR_RETURN(const int64_t value, ParseInteger(text, 0, 1));
                word2vec.cbow = value == 1;
                return absl::OkStatus();
              });
  flags.Choice("--cbow-gradient", &word2vec.cbow_gradient,
               "Of each context: the whole of the mean's, as word2vec has it, "
               "or its share, the loss's own");
  flags.Switch("--hs", &word2vec.hs,
               "Hierarchical softmax in place of negative words");
  flags.Integer("--negative", &word2vec.negative, 1, kMaxNegative,
                "Negative words against each word");
  flags.Value("--negatives", "shared|group:N|exact",
              "They are drawn for a window, for each N of its contexts, or for "
              "each context as word2vec does [shared]",
              [&word2vec](const std::string& text) -> absl::Status {
                ASSIGN_OR_RETURN(word2vec.negatives, ParseNegatives(text));
                return absl::OkStatus();
              });
  flags.Unsigned("--seed", &config.seed, "Of all that is drawn [1]");
}

}  // namespace

void AddWord2vec(Config& config, FlagSet& flags,
                 std::vector<std::string>* files) {
  Word2vecConfig& word2vec = config.word2vec;
  AddCorpus(word2vec, flags, files);
  AddVectorModel(config, flags);
  flags.Group("Training");
  flags.Integer("--epochs", &config.epochs, 1, kMaxEpochs,
                "Passes over the corpus");
  flags.Integer("--max-words", &word2vec.max_words, 0, kMaxCount,
                "Stop after so many words of the text and what is left of "
                "each thread's block of 256 steps, or of 8 blocks with "
                "--deterministic; 0: never");
  flags.Number("--lr", &word2vec.lr, FLT_MIN, FLT_MAX,
               "Learning rate at the start; it falls in a line");
  flags.Number("--min-lr", &word2vec.min_lr, 0, FLT_MAX,
               "Learning rate at the end");
  flags.Switch("--deterministic", &word2vec.deterministic,
               "The same bits for any number of threads; slower");
  flags.Integer("--hot-rows", &word2vec.hot_rows, -1, 1 << 20,
                "The most frequent words of which each thread has a copy; -1: "
                "2048 while cores are far apart and threads 4 at most, else "
                "none");
  flags.Group("Output");
  flags.Text("--out", "DIR", &config.out,
             "Save the vectors, vectors.vocab, config.json, log.jsonl and "
             "graph.txt there");
  flags.Choice("--format", &word2vec.format,
               "vectors.bin, vectors.txt or vectors.safetensors");
  flags.Switch("--force", &config.force,
               "Remove an earlier run from --out first");
}

absl::Status SettleWord2vec(Config& config, const FlagSet& flags,
                            const std::vector<std::string>& files) {
  if (config.verb != Verb::kWord2vec) return absl::OkStatus();
  Word2vecConfig& word2vec = config.word2vec;
  if (files.size() != 1) {
    return Refuse(absl::StrCat("word2vec: want one CORPUS, got ",
                               files.empty() ? "none" : Quote(files[1])));
  }
  word2vec.corpus = files[0];
  for (const char* flag : {"--negative", "--negatives"}) {
    if (flags.Given(flag) && word2vec.hs) {
      return Refuse(absl::StrCat(flag, ": want no --hs with it"));
    }
  }
  if (flags.Given("--negatives") && word2vec.cbow) {
    return Refuse(
        "--negatives: want --cbow 0 with it, as CBOW has one context, the "
        "mean");
  }
  if (flags.Given("--cbow-gradient") && !word2vec.cbow) {
    return Refuse("--cbow-gradient: want --cbow 1 with it, got 0");
  }
  if (word2vec.hot_rows > 0 && config.compile.threads == 1) {
    return Refuse("--hot-rows: want --threads above 1 with it, got 1");
  }
  if (flags.Given("--hot-rows") && word2vec.deterministic) {
    return Refuse("--hot-rows: want no --deterministic with it");
  }
  if (flags.Given("--format") && config.out.empty()) {
    return Refuse("--format: want --out DIR with it");
  }
  if (word2vec.min_lr > word2vec.lr) {
    return Refuse(absl::StrCat("--min-lr: want at most --lr ", word2vec.lr,
                               ", got ", word2vec.min_lr));
  }
  return absl::OkStatus();
}

}  // namespace onestep
