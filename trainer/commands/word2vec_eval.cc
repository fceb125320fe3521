// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "trainer/commands/commands.h"
#include "trainer/word2vec/evaluate_vectors.h"
#include "trainer/word2vec/show_words.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

struct NamedPairs {
  std::string file;
  PairScores scores;
};

double Accuracy(const QuestionScores& scores) {
  return static_cast<double>(scores.correct) /
         static_cast<double>(scores.asked);
}

Json OrNull(double value) { return std::isnan(value) ? Json() : Json(value); }

Json PairsToJson(const std::vector<NamedPairs>& pairs) {
  Json list = Json::array();
  for (const auto& [file, scores] : pairs) {
    list.push_back({{"file", file},
                    {"spearman", OrNull(scores.spearman)},
                    {"pearson", OrNull(scores.pearson)},
                    {"pairs", scores.pairs},
                    {"unknown", scores.unknown}});
  }
  return list;
}

Json QuestionsToJson(const std::vector<QuestionScores>& sections) {
  Json list = Json::array();
  for (const QuestionScores& scores : sections) {
    list.push_back({{"section", scores.section},
                    {"accuracy", OrNull(Accuracy(scores))},
                    {"correct", scores.correct},
                    {"asked", scores.asked},
                    {"unknown", scores.unknown}});
  }
  return list;
}

// The sums of the semantic sections, the syntactic ones, and all.
std::vector<QuestionScores> Totals(
    const std::vector<QuestionScores>& sections) {
  std::vector<QuestionScores> totals(3);
  totals[0].section = "semantic";
  totals[1].section = "syntactic";
  totals[2].section = "total";
  for (const QuestionScores& scores : sections) {
    totals[scores.syntactic() ? 1 : 0].Add(scores);
    totals[2].Add(scores);
  }
  return totals;
}

// "-" of what is not a number.
std::string Cell(double value, int digits, const char* unit = "") {
  return std::isnan(value) ? "-"
                           : absl::StrFormat("%.*f%s", digits, value, unit);
}

// The first column to the left, the others to the right.
std::string Align(const std::vector<std::array<std::string, 5>>& rows) {
  std::array<size_t, 5> widths = {};
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string table;
  for (const auto& row : rows) {
    absl::StrAppendFormat(&table, "%-*s", widths[0], row[0]);
    for (size_t i = 1; i < row.size(); ++i) {
      absl::StrAppendFormat(&table, "  %*s", widths[i], row[i]);
    }
    table += '\n';
  }
  return table;
}

std::string PairTable(const std::vector<NamedPairs>& pairs) {
  std::vector<std::array<std::string, 5>> rows = {
      {"pairs", "spearman", "pearson", "known", "unknown"}};
  for (const auto& [file, scores] : pairs) {
    rows.push_back({file, Cell(scores.spearman, 4), Cell(scores.pearson, 4),
                    absl::StrCat(scores.pairs), absl::StrCat(scores.unknown)});
  }
  return Align(rows);
}

std::string QuestionTable(const std::vector<QuestionScores>& sections) {
  std::vector<std::array<std::string, 5>> rows = {
      {"questions", "accuracy", "correct", "known", "unknown"}};
  for (const QuestionScores& scores : sections) {
    rows.push_back({scores.section, Cell(100 * Accuracy(scores), 2, "%"),
                    absl::StrCat(scores.correct), absl::StrCat(scores.asked),
                    absl::StrCat(scores.unknown)});
  }
  return Align(rows);
}

}  // namespace

absl::Status RunWord2vecEval(const Config& config, Console& console) {
  ASSIGN_OR_RETURN(const WordSpace space, LoadWordSpace(config));
  ASSIGN_OR_RETURN(const VectorsEvaluator evaluator,
                   VectorsEvaluator::Create(space));
  std::vector<NamedPairs> pairs;
  for (const std::string& file : config.pairs) {
    ASSIGN_OR_RETURN(const PairScores scores, evaluator.ScorePairs(file));
    pairs.push_back({file, scores});
  }
  std::vector<QuestionScores> sections, totals;
  if (!config.questions.empty()) {
    ASSIGN_OR_RETURN(sections, evaluator.ScoreQuestions(config.questions));
    totals = Totals(sections);
  }
  if (config.json) {
    Json json = {{"model_file", space.vectors().path},
                 {"words", space.size()},
                 {"pairs", PairsToJson(pairs)}};
    if (!config.questions.empty()) {
      json["questions"] = {{"file", config.questions},
                           {"sections", QuestionsToJson(sections)},
                           {"totals", QuestionsToJson(totals)}};
    }
    console.Print(JsonLine(json));
    return absl::OkStatus();
  }
  if (!pairs.empty()) console.Print(PairTable(pairs));
  if (!config.questions.empty()) {
    sections.insert(sections.end(), totals.begin(), totals.end());
    console.Print(
        absl::StrCat(pairs.empty() ? "" : "\n", QuestionTable(sections)));
  }
  return absl::OkStatus();
}

}  // namespace onestep
