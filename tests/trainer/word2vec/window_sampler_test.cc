// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/window_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <vector>

namespace onestep {
namespace {

using testing::Each;
using testing::ElementsAre;

// A sampler over a text in which no word is left out.
struct Sampled {
  explicit Sampled(Word2vecConfig c, int words) : config(c) {
    config.sample = 0;
    keep.assign(words, ~uint32_t{0});
    // Falling counts, so that the tree is deep.
    for (int i = 0; i < words; ++i) counts.push_back(1 + 1000 / (i + 1));
    source.config = &config;
    source.keep = keep;
    if (config.hs) {
      source.tree = &tree.emplace(counts);
    } else {
      source.negatives = &negatives.emplace(counts, 0.75);
    }
  }

  // All steps of the tokens, in blocks of at most `capacity`.
  StepBlock Run(const std::vector<int32_t>& tokens, int64_t capacity = 1 << 10,
                const RowMap& rows = {}) {
    capacity = std::max(capacity, source.steps_of_window());
    WindowSampler sampler(source);
    sampler.Start(tokens, Random(3));
    StepBlock all(std::ssize(tokens) * source.steps_of_window(),
                  source.contexts(), source.outputs());
    StepBlock block(capacity, source.contexts(), source.outputs());
    while (sampler.Fill(rows, block)) {
      const auto append = [&](auto& to, const auto& from, int64_t per_step) {
        std::copy_n(from.begin(), block.steps * per_step,
                    to.begin() + all.steps * per_step);
      };
      append(all.contexts, block.contexts, all.num_contexts);
      append(all.mask, block.mask, all.num_contexts);
      append(all.spread, block.spread, all.num_contexts);
      append(all.outputs, block.outputs, all.num_outputs);
      append(all.weights, block.weights, all.num_outputs);
      append(all.labels, block.labels, all.num_outputs);
      append(all.centres, block.centres, 1);
      all.steps += block.steps;
      all.words += block.words;
      all.used += block.used;
      all.pairs += block.pairs;
    }
    return all;
  }

  Word2vecConfig config;
  std::vector<uint32_t> keep;
  std::vector<int64_t> counts;
  std::optional<AliasTable> negatives;
  std::optional<HuffmanTree> tree;
  SamplerSource source;
};

// Of a step, the contexts that count.
std::vector<int32_t> ContextsOf(const StepBlock& steps, int64_t t) {
  std::vector<int32_t> contexts;
  for (int64_t i = 0; i < steps.num_contexts; ++i) {
    if (steps.mask[t * steps.num_contexts + i] == 0) continue;
    contexts.push_back(steps.contexts[t * steps.num_contexts + i]);
  }
  return contexts;
}

// 0, 1, 2 ... n - 1 as one sentence.
std::vector<int32_t> Sentence(int n) {
  std::vector<int32_t> tokens(n);
  std::iota(tokens.begin(), tokens.end(), 0);
  tokens.push_back(-1);
  return tokens;
}

TEST(WindowSamplerTest, EveryWordOfALongSentenceIsACentreWithItsNeighbours) {
  for (const int64_t window : {3, 700}) {
    Word2vecConfig config;
    config.window = window;
    const int64_t words = 5 * window + 1500;
    Sampled sampled(config, static_cast<int>(words));
    const StepBlock steps = sampled.Run(Sentence(static_cast<int>(words)), 100);
    ASSERT_EQ(steps.steps, words);
    EXPECT_EQ(steps.words, words);
    EXPECT_EQ(steps.used, words);
    int64_t pairs = 0;
    double inner = 0;  // spans of centres whose windows no end cuts
    for (int64_t t = 0; t < words; ++t) {
      ASSERT_EQ(steps.centres[t], t);
      ASSERT_EQ(steps.outputs[t * 6], t);
      const std::vector<int32_t> contexts = ContextsOf(steps, t);
      pairs += std::ssize(contexts);
      // The same number on both sides, all of it, but for the sentence's ends.
      const int64_t span = std::max(t - contexts.front(), contexts.back() - t);
      ASSERT_LE(span, window);
      std::vector<int32_t> want;
      for (int64_t i = std::max<int64_t>(0, t - span);
           i <= std::min<int64_t>(words - 1, t + span); ++i) {
        if (i != t) want.push_back(static_cast<int32_t>(i));
      }
      ASSERT_EQ(contexts, want);
      if (t >= window && t + window < words) inner += span;
    }
    EXPECT_EQ(steps.pairs, pairs);
    // Spans of 1 to window are as likely; five deviations of the mean.
    const double mean = inner / (words - 2 * window);
    EXPECT_NEAR(mean, (1 + window) / 2.0,
                5 * window / std::sqrt(12.0 * (words - 2 * window)));
  }
}

TEST(WindowSamplerTest, WindowsEndWithTheSentence) {
  Word2vecConfig config;
  config.window = 1;
  Sampled sampled(config, 10);
  const StepBlock steps = sampled.Run({1, 2, -1, 3, -1, -1, 4, 5});
  ASSERT_EQ(steps.steps, 4);  // 3 is alone
  EXPECT_EQ(steps.words, 5);
  EXPECT_THAT(ContextsOf(steps, 0), ElementsAre(2));
  EXPECT_THAT(ContextsOf(steps, 1), ElementsAre(1));
  EXPECT_THAT(ContextsOf(steps, 2), ElementsAre(5));
  EXPECT_THAT(ContextsOf(steps, 3), ElementsAre(4));
}

TEST(WindowSamplerTest, DrawsTheSameStepsForAnyCapacity) {
  Word2vecConfig config;
  Sampled sampled(config, 700);
  const StepBlock few = sampled.Run(Sentence(700), 7);
  const StepBlock many = sampled.Run(Sentence(700), 4096);
  EXPECT_EQ(few.contexts, many.contexts);
  EXPECT_EQ(few.outputs, many.outputs);
  EXPECT_EQ(few.mask, many.mask);
}

TEST(WindowSamplerTest, LeavesOutWordsByTheirThreshold) {
  Word2vecConfig config;
  Sampled sampled(config, 4);
  sampled.keep[1] = 0;
  sampled.keep[2] = 1u << 31;
  std::vector<int32_t> tokens;
  for (int i = 0; i < 4000; ++i) tokens.push_back(i % 4);
  const StepBlock steps = sampled.Run(tokens);
  EXPECT_EQ(steps.words, 4000);
  EXPECT_NEAR(steps.used, 2500, 80);  // five deviations
  for (int64_t t = 0; t < steps.steps; ++t) ASSERT_NE(steps.centres[t], 1);
}

TEST(WindowSamplerTest, ExactNegativesAreAStepForEachContext) {
  Word2vecConfig config;
  config.window = 2;
  config.negatives.contexts = Negatives::kExact;
  Sampled sampled(config, 1000);
  const StepBlock steps = sampled.Run(Sentence(1000));
  EXPECT_EQ(steps.num_contexts, 1);
  EXPECT_EQ(steps.steps, steps.pairs);
  for (int64_t t = 0; t < steps.steps; ++t) {
    ASSERT_NE(steps.contexts[t], steps.centres[t]);
    ASSERT_LE(std::abs(steps.contexts[t] - steps.centres[t]), 2);
    ASSERT_EQ(steps.mask[t], 1);
  }
}

TEST(WindowSamplerTest, GroupsShareTheContextsOfAWindow) {
  Word2vecConfig config;
  config.window = 5;
  config.negatives.contexts = 4;
  Sampled sampled(config, 1000);
  const StepBlock steps = sampled.Run(Sentence(1000));
  EXPECT_EQ(steps.num_contexts, 4);
  // Of 2, 4, 6, 8 or 10 contexts: 1, 1, 2, 2 or 3 groups.
  EXPECT_NEAR(static_cast<double>(steps.steps) / 1000, 9.0 / 5, 0.1);
  int64_t contexts = 0;
  for (int64_t t = 0; t < steps.steps; ++t) {
    contexts += std::ssize(ContextsOf(steps, t));
  }
  EXPECT_EQ(contexts, steps.pairs);
}

TEST(WindowSamplerTest, NegativesThatAreTheCentreDoNotCount) {
  Word2vecConfig config;
  Sampled sampled(config, 2);
  std::vector<int32_t> tokens;
  for (int i = 0; i < 300; ++i) tokens.push_back(i % 2);
  const StepBlock steps = sampled.Run(tokens);
  int64_t left_out = 0;
  for (int64_t t = 0; t < steps.steps; ++t) {
    ASSERT_EQ(steps.weights[t * 6], 1);
    for (int64_t k = 1; k < 6; ++k) {
      const bool centre = steps.outputs[t * 6 + k] == steps.centres[t];
      ASSERT_EQ(steps.weights[t * 6 + k], centre ? 0 : 1);
      left_out += centre;
    }
  }
  EXPECT_GT(left_out, 0);
}

TEST(WindowSamplerTest, CbowHasAStepForEachCentre) {
  for (const CbowGradient gradient :
       {CbowGradient::kWord2vec, CbowGradient::kExact}) {
    Word2vecConfig config;
    config.cbow = true;
    config.cbow_gradient = gradient;
    Sampled sampled(config, 100);
    const StepBlock steps = sampled.Run(Sentence(100));
    ASSERT_EQ(steps.steps, 100);
    EXPECT_EQ(steps.pairs, 100);
    for (int64_t t = 0; t < 100; ++t) {
      const auto m = static_cast<float>(ContextsOf(steps, t).size());
      float sum = 0;
      for (int64_t i = t * 10; i < t * 10 + 10; ++i) {
        sum += steps.mask[i];
        const bool counts = steps.mask[i] > 0;
        const float spread = !counts                            ? 0
                             : gradient == CbowGradient::kExact ? 1 / m
                                                                : 1;
        ASSERT_EQ(steps.spread[i], spread);
      }
      ASSERT_FLOAT_EQ(sum, 1);
    }
  }
}

TEST(WindowSamplerTest, OutputsOfHierarchicalSoftmaxAreTheCentresPath) {
  Word2vecConfig config;
  config.hs = true;
  Sampled sampled(config, 50);
  const StepBlock steps = sampled.Run(Sentence(50));
  const HuffmanTree& tree = *sampled.tree;
  const int64_t longest = steps.num_outputs;
  ASSERT_EQ(longest, tree.longest());
  for (int64_t t = 0; t < 50; ++t) {
    const float* const weights = &steps.weights[t * longest];
    const int64_t length = tree.length(static_cast<int32_t>(t));
    ASSERT_EQ(std::accumulate(weights, weights + longest, 0.0f), length);
    EXPECT_EQ(steps.outputs[t * longest], 0);  // the root is row 0
    tree.ForEachNode(static_cast<int32_t>(t),
                     [&](int i, int32_t node, int code) {
                       EXPECT_EQ(steps.outputs[t * longest + i], 48 - node);
                       EXPECT_EQ(steps.labels[t * longest + i], 1 - code);
                     });
  }
}

TEST(WindowSamplerTest, HotRowsAreTheThreadsOwn) {
  Word2vecConfig config;
  Sampled sampled(config, 100);
  RowMap rows;
  rows.hot = 10;
  rows.in_base = 100;
  rows.out_base = 200;
  rows.classes = 2;
  rows.own_class = 1;
  const StepBlock shared = sampled.Run(Sentence(100));
  const StepBlock own = sampled.Run(Sentence(100), 1 << 10, rows);
  for (int64_t i = 0; i < shared.steps * 10; ++i) {
    if (shared.mask[i] == 0) continue;
    const int32_t id = shared.contexts[i];
    ASSERT_EQ(own.contexts[i], id < 10 ? 100 + id : id);
  }
  for (int64_t i = 0; i < shared.steps * 6; ++i) {
    const int32_t row = own.outputs[i];
    if (row >= 200) {
      ASSERT_EQ(row - 200, shared.outputs[i]);
    } else if (i % 6 == 0) {
      ASSERT_EQ(row, shared.outputs[i]);
    } else {  // of the class, and next to what was drawn
      ASSERT_EQ(row % 2, 1);
      ASSERT_EQ(row / 2, shared.outputs[i] / 2);
    }
  }
}

}  // namespace
}  // namespace onestep
