// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/graph_flags.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "trainer/word2vec/embedding_tables.h"

namespace onestep {
namespace {

// Of the longest path of a Huffman code whose rarest words are 2^-24 of a text.
constexpr int64_t kPathNodes = 24;

constexpr const char* kSizes[] = {"--vocab", "--size", "--window",
                                  "--negative"};
constexpr const char* kNet[] = {
    "--model",    "--activation",   "--loss",  "--optimizer", "--momentum",
    "--nesterov", "--weight-decay", "--batch", "--input",     "--models"};

}  // namespace

void AddWindowGraph(Config& config, FlagSet& flags) {
  flags.Group("Word vectors");
  flags.Choice("--word2vec", &config.window_model,
               "The step of a window of words, in place of a net's");
  flags.Integer("--vocab", &config.vocab, 2, 1 << 30, "Words");
  flags.Integer("--size", &config.word2vec.size, 1, kMaxSize,
                "Values of a vector");
  flags.Integer("--window", &config.word2vec.window, 1, kMaxWindow,
                "Words on each side of the centre");
  flags.Integer("--negative", &config.word2vec.negative, 1, kMaxNegative,
                "Words drawn beside the centre; hs draws none");
}

absl::Status CheckWindowGraph(const Config& config, const FlagSet& flags) {
  if (config.verb != Verb::kGraph) return absl::OkStatus();
  if (config.window_model == WindowModel::kNone) {
    for (const char* flag : kSizes) {
      if (!flags.Given(flag)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": want --word2vec with it, got none"));
    }
    return absl::OkStatus();
  }
  for (const char* flag : kNet) {
    if (!flags.Given(flag)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": want no --word2vec with it, got ",
                     NameOf(config.window_model)));
  }
  if (WindowOf(config).hs && flags.Given("--negative")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--negative: want skipgram or cbow with it, got ",
                     NameOf(config.window_model)));
  }
  return absl::OkStatus();
}

WindowSpec WindowOf(const Config& config) {
  WindowSpec spec;
  spec.cbow = config.window_model == WindowModel::kCbow ||
              config.window_model == WindowModel::kCbowHs;
  spec.hs = config.window_model == WindowModel::kHs ||
            config.window_model == WindowModel::kCbowHs;
  spec.in_rows = config.vocab;
  spec.out_rows = spec.hs ? config.vocab - 1 : config.vocab;
  spec.cols = TableSizes{.size = config.word2vec.size}.stride();
  spec.contexts = 2 * config.word2vec.window;
  spec.outputs = spec.hs ? kPathNodes : 1 + config.word2vec.negative;
  return spec;
}

}  // namespace onestep
