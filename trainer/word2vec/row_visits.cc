// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/row_visits.h"

#include <algorithm>

namespace onestep {
namespace {

// Of a window, whose size is uniform. CBOW has one, in which each word has its
// share.
double MeanContexts(const Word2vecConfig& config) {
  return config.cbow ? 1 : 1 + static_cast<double>(config.window);
}

}  // namespace

std::vector<double> VisitsOfRows(const SamplerSource& source, int64_t rows) {
  const Word2vecConfig& config = *source.config;
  std::vector<double> used(source.counts.size());  // shares of the words used
  double sum = 0;
  for (size_t w = 0; w < used.size(); ++w) {
    used[w] = static_cast<double>(source.counts[w]) * source.keep[w];
    sum += used[w];
  }
  for (double& share : used) share /= std::max(sum, 1.0);
  const double contexts = MeanContexts(config);
  double outputs = 1 + static_cast<double>(config.negative);
  std::vector<double> visits(rows);
  if (config.hs) {
    const int32_t words = source.tree->words(), root = words - 2;
    outputs = 0;
    for (int32_t w = 0; w < words; ++w) {
      source.tree->ForEachNode(w, [&](int, int32_t node, int) {
        outputs += used[w];
        if (root - node < rows) visits[root - node] += contexts * used[w];
      });
    }
  } else {
    const std::vector<double> drawn = source.negatives->Probabilities();
    for (int64_t r = 0; r < rows; ++r) {
      visits[r] = contexts * (used[r] + (outputs - 1) * drawn[r]);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    visits[r] = std::max(visits[r], contexts * outputs * used[r]);
  }
  return visits;
}

double WindowsUnseen(double visits, int others, double lr) {
  // Rate times pairs of the others: a third of where losses were seen to rise.
  constexpr double kMostUnseen = 8;
  return kMostUnseen / std::max(others * lr * visits, 1e-9);
}

std::vector<MergeGroup> MergeGroups(const SamplerSource& source, int64_t rows,
                                    int others, int64_t most) {
  const std::vector<double> visits = VisitsOfRows(source, rows);
  std::vector<MergeGroup> groups;
  for (int64_t begin = 0; begin < rows;) {
    int64_t end = begin + 1;
    while (end < rows && visits[end] > visits[begin] / 2) ++end;
    const double windows =
        WindowsUnseen(visits[begin], others, source.config->lr);
    groups.push_back(
        {begin, end - begin, std::min(windows, static_cast<double>(most))});
    begin = end;
  }
  return groups;
}

int64_t StepsUnseen(const SamplerSource& source, int others, int64_t most) {
  const double windows =
      WindowsUnseen(VisitsOfRows(source, 1)[0], others, source.config->lr);
  const double steps_of_window =
      std::max(1.0, MeanContexts(*source.config) /
                        static_cast<double>(source.contexts()));
  const double steps =
      std::min(windows * steps_of_window, static_cast<double>(most));
  return std::max(static_cast<int64_t>(steps), source.steps_of_window());
}

}  // namespace onestep
