// SPDX-License-Identifier: Apache-2.0
#include "trainer/vectors_flags.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status.h"
#include "trainer/numbers.h"

namespace onestep {
namespace {

constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxNeighbours = 1'000'000;

}  // namespace

bool UsesVectors(Verb verb) {
  return verb == Verb::kNearest || verb == Verb::kAnalogy ||
         verb == Verb::kWord2vecEval;
}

void AddVectors(Config& config, FlagSet& flags,
                std::vector<std::string>* words) {
  flags.Group("Model");
  const std::string model =
      "MODEL, a file of word vectors or a folder of --out";
  if (config.verb == Verb::kWord2vecEval) {
    flags.Positional(words, "MODEL", model);
    flags.Group("Tests");
    flags.Value("--pairs", "FILE,FILE",
                "Pairs that people judged, lines of word, word and number "
                "with tabs between: correlation of the cosines with theirs",
                [&config](const std::string& text) {
                  config.pairs = absl::StrSplit(text, ',', absl::SkipEmpty());
                  return absl::OkStatus();
                });
    flags.Text("--questions", "FILE", &config.questions,
               "Analogies, lines of four words in sections \": name\"; those "
               "in sections gram... are syntactic");
  } else {
    const bool asks = config.verb == Verb::kAnalogy;
    flags.Positional(
        words, asks ? "MODEL A B C" : "MODEL WORD...",
        absl::StrCat(
            model, asks ? "; A is to B as C is to what?"
                        : "; words of it, behind -- where one begins with -"));
    flags.Group("Output");
    config.top = asks ? 5 : 10;
    flags.Integer("--top", &config.top, 1, kMaxNeighbours,
                  "Words to show, the nearest first");
  }
  flags.Group("Run");
  flags.Value("--threads", "N",
              absl::StrCat("CPU threads [", config.compile.threads, "]"),
              [&config](const std::string& text) -> absl::Status {
                ASSIGN_OR_RETURN(const int64_t threads,
                                 ParseInteger(text, 1, kMaxThreads));
                config.compile.threads = static_cast<int>(threads);
                return absl::OkStatus();
              });
}

absl::Status SettleVectors(Config& config, std::vector<std::string> words) {
  if (!UsesVectors(config.verb)) return absl::OkStatus();
  const auto want = [&config](const char* what, const std::string& got) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(config.verb), ": want ", what, ", got ", got));
  };
  if (words.empty()) return want("a MODEL file", "none");
  config.model_file = words.front();
  words.erase(words.begin());
  config.words = std::move(words);
  const size_t count = config.words.size();
  switch (config.verb) {
    case Verb::kNearest:
      if (count == 0) return want("MODEL and WORDs", "no word");
      break;
    case Verb::kAnalogy:
      if (count != 3) {
        return want("MODEL and three words", absl::StrCat(count, " words"));
      }
      break;
    default:
      if (count > 0) return want("one MODEL", Quote(config.words[0]) + " too");
      if (config.pairs.empty() && config.questions.empty()) {
        return want("--pairs or --questions", "none");
      }
  }
  return absl::OkStatus();
}

}  // namespace onestep
