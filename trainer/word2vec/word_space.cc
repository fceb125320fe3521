// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/word_space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "runtime/base/nearest.h"
#include "runtime/base/status.h"
#include "runtime/cpu/parallel.h"
#include "trainer/numbers.h"

namespace onestep {
namespace {

constexpr int64_t kSpellings = 3;
constexpr int64_t kBlockScores = int64_t{1} << 24;  // 64 MiB
constexpr int64_t kMaxBlock = 512;                  // directions

double Dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

void ScaleToOne(float* row, int64_t n) {
  const double length = std::sqrt(Dot(row, row, n));
  if (!std::isfinite(length) || length == 0) return;
  for (int64_t i = 0; i < n; ++i) {
    row[i] = static_cast<float>(row[i] / length);
  }
}

bool IsOf(const Direction& direction, int64_t word) {
  for (const std::vector<int64_t>* words :
       {&direction.plus, &direction.minus}) {
    if (std::find(words->begin(), words->end(), word) != words->end()) {
      return true;
    }
  }
  return false;
}

bool IsNearer(const Neighbour& a, const Neighbour& b) {
  return a.cosine != b.cosine ? a.cosine > b.cosine : a.word < b.word;
}

// scores[size]; what is not a number is no neighbour.
std::vector<Neighbour> Best(const float* scores, int64_t size,
                            const Direction& direction, int64_t top) {
  std::vector<Neighbour> best;  // a heap, the farthest first
  float least = -std::numeric_limits<float>::infinity();
  for (int64_t word = 0; word < size; ++word) {
    const float score = scores[word];
    if (!(score > least) || IsOf(direction, word)) continue;
    best.push_back({word, score});
    std::push_heap(best.begin(), best.end(), IsNearer);
    if (std::ssize(best) > top) {
      std::pop_heap(best.begin(), best.end(), IsNearer);
      best.pop_back();
    }
    if (std::ssize(best) == top) least = best.front().cosine;
  }
  std::sort_heap(best.begin(), best.end(), IsNearer);
  return best;
}

// directions f32[block,dim] x words f32[size,dim] -> scores f32[block,size].
absl::StatusOr<Compiled> CompileScores(int64_t block, int64_t size, int64_t dim,
                                       int threads) {
  Graph graph;
  const Value directions = graph.AddInput("directions", F32({block, dim}));
  const Value words = graph.AddInput("words", F32({size, dim}));
  MatMulAttrs attrs;
  attrs.trans_b = true;
  graph.AddResult("scores",
                  graph.Add(OpKind::kMatMul, {directions, words}, attrs));
  CompileOptions options;
  options.dispatch = Dispatch::kOps;
  options.threads = threads;
  return Compile(std::move(graph), options);
}

}  // namespace

WordSpace::WordSpace(WordVectors vectors, int threads)
    : vectors_(std::move(vectors)), threads_(threads) {
  const int64_t dim = vectors_.dim;
  float* const rows = vectors_.rows.as<float>();
  ParallelFor(threads, size(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ScaleToOne(rows + i * dim, dim);
  });
}

absl::StatusOr<int64_t> WordSpace::Find(const std::string& word) const {
  const int64_t id = vectors_.words.Find(word);
  if (id >= 0) return id;
  std::vector<std::pair<int, int64_t>> spellings;  // by distance, then place
  for (int64_t i = 0; i < std::min(size(), kFrequentWords); ++i) {
    const std::string_view known = this->word(i);
    spellings.emplace_back(EditDistance(word, {known.data(), known.size()}), i);
  }
  const int64_t shown = std::min<int64_t>(kSpellings, spellings.size());
  std::partial_sort(spellings.begin(), spellings.begin() + shown,
                    spellings.end());
  std::string nearest;
  for (int64_t i = 0; i < shown; ++i) {
    absl::StrAppend(&nearest, i == 0 ? "" : ", ",
                    Quote(std::string(this->word(spellings[i].second))));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("want words of ", vectors_.path, ", got ", Quote(word),
                   "; the nearest are ", nearest));
}

double WordSpace::Cosine(int64_t a, int64_t b) const {
  return Dot(vectors_.row(a), vectors_.row(b), vectors_.dim);
}

void WordSpace::SumUnits(const Direction& direction, float* sum) const {
  const int64_t dim = vectors_.dim;
  std::fill_n(sum, dim, 0.0f);
  for (const int64_t word : direction.plus) {
    for (int64_t i = 0; i < dim; ++i) sum[i] += vectors_.row(word)[i];
  }
  for (const int64_t word : direction.minus) {
    for (int64_t i = 0; i < dim; ++i) sum[i] -= vectors_.row(word)[i];
  }
  ScaleToOne(sum, dim);
}

absl::StatusOr<std::vector<std::vector<Neighbour>>> WordSpace::Nearest(
    const std::vector<Direction>& directions, int64_t top, int64_t size) const {
  const int64_t dim = vectors_.dim;
  const int64_t count = std::ssize(directions);
  std::vector<std::vector<Neighbour>> nearest(count);
  const int64_t block =
      std::min(count, std::clamp<int64_t>(kBlockScores / size, 1, kMaxBlock));
  if (count == 0) return nearest;
  ASSIGN_OR_RETURN(Compiled compiled,
                   CompileScores(block, size, dim, threads_));
  Executable& executable = *compiled.executable;
  ASSIGN_OR_RETURN(Buffer sums, Buffer::Create(block * dim * sizeof(float)));
  ASSIGN_OR_RETURN(Buffer scores, Buffer::Create(block * size * sizeof(float)));
  RETURN_IF_ERROR(executable.Bind("directions", sums.data()));
  // Inputs are only read.
  RETURN_IF_ERROR(
      executable.Bind("words", const_cast<float*>(vectors_.row(0))));
  RETURN_IF_ERROR(executable.Bind("scores", scores.data()));
  for (int64_t first = 0; first < count; first += block) {
    const int64_t rows = std::min(block, count - first);
    for (int64_t i = 0; i < rows; ++i) {
      SumUnits(directions[first + i], sums.as<float>() + i * dim);
    }
    RETURN_IF_ERROR(executable.Run(1));
    ParallelFor(threads_, rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        nearest[first + i] = Best(scores.as<float>() + i * size, size,
                                  directions[first + i], top);
      }
    });
  }
  return nearest;
}

}  // namespace onestep
