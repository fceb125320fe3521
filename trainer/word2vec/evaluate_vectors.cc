// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/evaluate_vectors.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/base/status.h"
#include "trainer/numbers.h"
#include "trainer/word2vec/mapping.h"
#include "trainer/word2vec/plain_text.h"

namespace onestep {
namespace {

// So many of the nearest words are looked at for one that is none of the
// three, written in any way.
constexpr int64_t kAnswers = 5;

std::string_view AsStd(absl::string_view text) {
  return {text.data(), text.size()};
}

// Calls take(line) for each that is not blank, without blanks at its ends. A
// status of it comes back behind "<path>: line <n>: ".
template <typename Take>
absl::Status ForEachLine(const std::string& path, const Take& take) {
  ASSIGN_OR_RETURN(const Mapping file, Mapping::OfFile(path));
  RETURN_IF_ERROR(CheckUnpacked(path, file.text()));
  const std::string_view plain = SkipByteOrderMark(file.text());
  const absl::string_view text(plain.data(), plain.size());
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    const absl::Status status = take(line);
    if (status.ok()) continue;
    return absl::Status(status.code(), absl::StrCat(path, ": line ", number,
                                                    ": ", status.message()));
  }
  return absl::OkStatus();
}

// 1 for the smallest. REQUIRES: each is a number.
std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&values](int64_t a, int64_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) {
      ++end;
    }
    for (size_t i = begin; i < end; ++i) {
      ranks[order[i]] = static_cast<double>(begin + 1 + end) / 2;
    }
  }
  return ranks;
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.size());
}

}  // namespace

double Pearson(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = Mean(a), mean_b = Mean(b);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return ab / std::sqrt(aa * bb);
}

double Spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const double sum = Mean(a) + Mean(b);
  return std::isnan(sum) ? sum : Pearson(Ranks(a), Ranks(b));
}

void QuestionScores::Add(const QuestionScores& other) {
  correct += other.correct;
  asked += other.asked;
  unknown += other.unknown;
}

absl::StatusOr<VectorsEvaluator> VectorsEvaluator::Create(
    const WordSpace& space) {
  ASSIGN_OR_RETURN(UpperCase upper, UpperCase::Create());
  return VectorsEvaluator(space, std::move(upper));
}

VectorsEvaluator::VectorsEvaluator(const WordSpace& space, UpperCase upper)
    : space_(&space), upper_(std::move(upper)) {
  for (int64_t i = 0; i < std::min(space.size(), kFrequentWords); ++i) {
    const std::string capitals = upper_(space.word(i));
    if (capitals_.Add(capitals)) ids_.push_back(i);
    same_as_.push_back(ids_[capitals_.Find(capitals)]);
  }
}

int64_t VectorsEvaluator::Find(std::string_view word) const {
  const int64_t place = capitals_.Find(upper_(word));
  return place < 0 ? -1 : ids_[place];
}

absl::StatusOr<PairScores> VectorsEvaluator::ScorePairs(
    const std::string& path) const {
  PairScores scores;
  std::vector<double> cosines, people;
  RETURN_IF_ERROR(ForEachLine(path, [&](absl::string_view line) {
    if (line[0] == '#') return absl::OkStatus();
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
    const absl::StatusOr<double> similarity =
        ParseNumber(fields.back(), -DBL_MAX, DBL_MAX);
    if (fields.size() != 3 || !similarity.ok()) {
      return absl::DataLossError(absl::StrCat(
          "want a word, a word and a number, tabs between, got ", Quote(line)));
    }
    const int64_t a = Find(AsStd(fields[0])), b = Find(AsStd(fields[1]));
    if (a < 0 || b < 0) {
      ++scores.unknown;
      return absl::OkStatus();
    }
    cosines.push_back(space_->Cosine(a, b));
    people.push_back(*similarity);
    return absl::OkStatus();
  }));
  scores.pairs = std::ssize(cosines);
  scores.spearman = Spearman(cosines, people);
  scores.pearson = Pearson(cosines, people);
  return scores;
}

absl::StatusOr<std::vector<QuestionScores>> VectorsEvaluator::ScoreQuestions(
    const std::string& path) const {
  struct Question {
    int64_t a, b, c, d;
    size_t section;
  };
  std::vector<QuestionScores> sections;
  std::vector<Question> questions;
  RETURN_IF_ERROR(ForEachLine(path, [&](absl::string_view line) {
    if (absl::ConsumePrefix(&line, ":")) {
      sections.emplace_back().section =
          std::string(absl::StripAsciiWhitespace(line));
      return absl::OkStatus();
    }
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() != 4 || sections.empty()) {
      return absl::DataLossError(
          absl::StrCat("want ", sections.empty() ? "\": section\"" : "4 words",
                       ", got ", Quote(line)));
    }
    int64_t ids[4];
    for (int i = 0; i < 4; ++i) ids[i] = Find(AsStd(words[i]));
    if (std::count(ids, ids + 4, -1) > 0) {
      ++sections.back().unknown;
      return absl::OkStatus();
    }
    questions.push_back({ids[0], ids[1], ids[2], ids[3], sections.size() - 1});
    return absl::OkStatus();
  }));

  std::vector<Direction> directions;
  for (const Question& q : questions) {
    directions.push_back({{q.b, q.c}, {q.a}});
  }
  ASSIGN_OR_RETURN(const auto nearest,
                   space_->Nearest(directions, kAnswers,
                                   std::min(space_->size(), kFrequentWords)));
  for (size_t i = 0; i < questions.size(); ++i) {
    const Question& q = questions[i];
    const auto answer = std::find_if(
        nearest[i].begin(), nearest[i].end(), [&](const Neighbour& n) {
          const int64_t id = same_as_[n.word];
          return id != q.a && id != q.b && id != q.c;
        });
    QuestionScores& section = sections[q.section];
    ++section.asked;
    if (answer != nearest[i].end() && same_as_[answer->word] == q.d) {
      ++section.correct;
    }
  }
  return sections;
}

}  // namespace onestep
