// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/synthetic_corpus.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "trainer/atomic_file.h"
#include "trainer/data/random.h"

namespace onestep {
namespace {

constexpr int kStemsOfTopic = 20;
constexpr int kInflections = 6;
constexpr int kCompanions = 3;  // of a stem
constexpr int kCues = 20;       // of an inflection
constexpr int kLineTokens = 20;
constexpr int kBackgroundOfTopic = 200;
constexpr int64_t kTokensOfTopic = 60'000;
constexpr int kPairsOfKind = 600;
constexpr int kQuestions = 2000;

int64_t Topics(int64_t tokens) {
  CHECK(tokens >= 1);
  return std::max<int64_t>(2, tokens / kTokensOfTopic);
}

// What is drawn from the seed: text, pairs, questions.
Random Stream(uint64_t seed, int what) {
  return Random(seed, uint64_t{5} << 32 | static_cast<uint64_t>(what));
}

// Draws i < size with probability proportional to 1 / (i + offset)^power.
class Zipf {
 public:
  Zipf(int64_t size, double offset, double power) : cumulative_(size) {
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) {
      sum += std::pow(static_cast<double>(i) + offset, -power);
      cumulative_[i] = sum;
    }
  }

  int64_t Draw(Random* random) const {
    const double point = random->Uniform(0, cumulative_.back());
    return std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, point) -
           cumulative_.begin();
  }

 private:
  std::vector<double> cumulative_;
};

std::string Word(int64_t stem, int64_t inflection) {
  return absl::StrCat("w", stem, "_", inflection);
}

int64_t Below(int64_t n, Random* random) {
  return static_cast<int64_t>(random->Below(static_cast<uint64_t>(n)));
}

class Writer {
 public:
  Writer(int64_t tokens, uint64_t seed)
      : topics_(Topics(tokens)),
        random_(Stream(seed, 0)),
        background_(topics_ * kBackgroundOfTopic, 2.7, 1),
        stems_(kStemsOfTopic, 1, 0.7) {}

  // Appends a line to *text; returns how many tokens it has.
  int Line(std::string* text) {
    topic_ = Below(topics_, &random_);
    inflection_ = Below(kInflections, &random_);
    stem_ = Stem();
    int tokens = 0;
    while (tokens < kLineTokens) tokens += Token(text);
    text->back() = '\n';
    return tokens;
  }

 private:
  int64_t Stem() { return topic_ * kStemsOfTopic + stems_.Draw(&random_); }

  void Companion(std::string* text) {
    absl::StrAppend(text, "k", stem_, "_", Below(kCompanions, &random_), " ");
  }

  // A token and a blank, or two. What a word has in common with its stem's
  // others is near it only, and takes training to tell from the topic's.
  int Token(std::string* text) {
    const double kind = random_.Uniform();
    if (kind < 0.25) {
      absl::StrAppend(text, "b", background_.Draw(&random_), " ");
    } else if (kind < 0.55) {
      absl::StrAppend(text, "q", inflection_, "_", Below(kCues, &random_), " ");
    } else if (kind < 0.75) {
      Companion(text);
    } else {
      stem_ = Stem();
      const bool regular = random_.Uniform() < 0.85;
      const int64_t inflection =
          regular ? inflection_ : Below(kInflections, &random_);
      absl::StrAppend(text, Word(stem_, inflection), " ");
      if (random_.Uniform() < 0.5) {
        Companion(text);
        return 2;
      }
    }
    return 1;
  }

  const int64_t topics_;
  Random random_;
  const Zipf background_, stems_;
  int64_t topic_ = 0, inflection_ = 0, stem_ = 0;  // of the line, now
};

// A number below `n` that is not `other`.
int64_t Another(int64_t other, int64_t n, Random* random) {
  return (other + 1 + Below(n - 1, random)) % n;
}

}  // namespace

absl::Status WriteSyntheticCorpus(const std::string& path, int64_t tokens,
                                  uint64_t seed) {
  constexpr size_t kPieceBytes = 1 << 16;
  Writer writer(tokens, seed);
  AtomicFile file(path);
  std::string text;
  for (int64_t done = 0; done < tokens;) {
    done += writer.Line(&text);
    if (text.size() >= kPieceBytes || done >= tokens) {
      file.Write(text);
      text.clear();
    }
  }
  return file.Commit();
}

std::string SyntheticPairs(int64_t tokens, uint64_t seed) {
  const int64_t topics = Topics(tokens);
  Random random = Stream(seed, 1);
  std::string pairs = "# Word 1\tWord 2\tLikeness\n";
  // The more that is around one word is around the other too, the more alike
  // they are: cues; the topic's companions; the stem's; words and cues.
  constexpr struct {
    bool same_topic, same_stem, same_inflection;
  } kKinds[] = {{false, false, true},
                {true, false, false},
                {true, true, false},
                {true, false, true}};
  int value = 0;
  for (const auto& [same_topic, same_stem, same_inflection] : kKinds) {
    ++value;
    for (int i = 0; i < kPairsOfKind; ++i) {
      const int64_t topic = Below(topics, &random);
      const int64_t place = Below(kStemsOfTopic, &random);
      const int64_t inflection = Below(kInflections, &random);
      const auto other = [&random](bool same, int64_t of, int64_t n) {
        return same ? of : Another(of, n, &random);
      };
      const int64_t topic2 = other(same_topic, topic, topics);
      const int64_t place2 = other(same_stem, place, kStemsOfTopic);
      const int64_t inflection2 =
          other(same_inflection, inflection, kInflections);
      absl::StrAppend(&pairs, Word(topic * kStemsOfTopic + place, inflection),
                      "\t", Word(topic2 * kStemsOfTopic + place2, inflection2),
                      "\t", value, "\n");
    }
  }
  return pairs;
}

std::string SyntheticQuestions(int64_t tokens, uint64_t seed) {
  const int64_t stems = Topics(tokens) * kStemsOfTopic;
  Random random = Stream(seed, 2);
  std::string questions = ": gram-inflection\n";
  for (int i = 0; i < kQuestions; ++i) {
    const int64_t stem = Below(stems, &random);
    const int64_t stem2 = Another(stem, stems, &random);
    const int64_t inflection = Below(kInflections, &random);
    const int64_t inflection2 = Another(inflection, kInflections, &random);
    absl::StrAppend(&questions, Word(stem, inflection), " ",
                    Word(stem, inflection2), " ", Word(stem2, inflection), " ",
                    Word(stem2, inflection2), "\n");
  }
  return questions;
}

}  // namespace onestep
