// SPDX-License-Identifier: Apache-2.0
// Which tokens are kept, which negatives are drawn, and the codes of words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "trainer/data/random.h"
#include "trainer/word2vec/alias_table.h"
#include "trainer/word2vec/huffman.h"
#include "trainer/word2vec/subsample.h"

namespace onestep {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr uint32_t kAll = 0xffffffff;

std::vector<int64_t> ZipfCounts(int words) {
  std::vector<int64_t> counts(words);
  for (int i = 0; i < words; ++i) counts[i] = 1 + 1'000'000 / (i + 1);
  return counts;
}

// The values are gensim's formula, evaluated by numpy.
TEST(KeepThresholdsTest, AreThoseOfGensim) {
  const std::vector<int64_t> counts = {1000, 100, 10, 1};
  EXPECT_THAT(KeepThresholds(counts, 1e-3),
              ElementsAre(147930126, 500423753, 1908755046, kAll));
  EXPECT_THAT(KeepThresholds(counts, 0.05),
              ElementsAre(1250868315, kAll, kAll, kAll));
  EXPECT_THAT(KeepThresholds(counts, 1),
              ElementsAre(200666711, 693299445, 2779761225, kAll));
  EXPECT_THAT(KeepThresholds(counts, 20),
              ElementsAre(1202741531, kAll, kAll, kAll));
}

TEST(KeepThresholdsTest, OfSampleZeroKeepAll) {
  EXPECT_THAT(KeepThresholds(ZipfCounts(100), 0), Each(kAll));
}

TEST(KeepThresholdsTest, OfTheLeastSampleKeepNextToNone) {
  for (const double sample : {1e-300, 1e-310, 5e-324}) {
    EXPECT_THAT(KeepThresholds(ZipfCounts(100), sample), Each(0)) << sample;
  }
  EXPECT_THAT(
      KeepThresholds(ZipfCounts(100), std::numeric_limits<double>::max()),
      Each(kAll));
}

std::vector<double> Exact(const std::vector<int64_t>& counts, double power) {
  std::vector<double> shares;
  for (const int64_t count : counts) {
    shares.push_back(std::pow(static_cast<double>(count), power));
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

TEST(AliasTableTest, HoldsTheExactProbabilities) {
  const std::vector<std::vector<int64_t>> cases = {
      {7}, {1, 1, 1}, {1'000'000'000'000, 1}, {2, 1}, ZipfCounts(40'000)};
  for (const std::vector<int64_t>& counts : cases) {
    for (const double power : {0.0, 0.75, 1.0}) {
      const std::vector<double> want = Exact(counts, power);
      const std::vector<double> got = AliasTable(counts, power).Probabilities();
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        // A threshold is rounded to 2^-32 of a cell.
        ASSERT_NEAR(got[i], want[i], 1e-6 * want[i] + 0x1p-32 / want.size())
            << i << " of " << want.size();
      }
    }
  }
}

TEST(AliasTableTest, DrawsAsItHolds) {
  const std::vector<int64_t> counts = ZipfCounts(1000);
  const std::vector<double> want = Exact(counts, 0.75);
  const AliasTable table(counts, 0.75);
  constexpr int kDraws = 2'000'000;
  std::vector<int64_t> drawn(counts.size());
  Random random(1);
  for (int i = 0; i < kDraws; ++i) ++drawn[table.Draw(random.Next())];
  double chi_square = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double expected = want[i] * kDraws;
    const double off = static_cast<double>(drawn[i]) - expected;
    chi_square += off * off / expected;
  }
  // Of 999 degrees of freedom: mean 999, standard deviation 45.
  EXPECT_NEAR(chi_square, 999, 5 * 45);
}

TEST(AliasTableTest, DrawsAWordForAnyBits) {
  const AliasTable table(ZipfCounts(1000), 0.75);
  EXPECT_GE(table.Draw(0), 0);
  EXPECT_LT(table.Draw(0), 1000);
  EXPECT_GE(table.Draw(~uint64_t{0}), 0);
  EXPECT_LT(table.Draw(~uint64_t{0}), 1000);
}

struct Path {
  std::vector<int32_t> nodes;
  std::string code;
};

Path PathOf(const HuffmanTree& tree, int32_t word) {
  const int length = tree.length(word);
  Path path{std::vector<int32_t>(length, -1), std::string(length, '?')};
  tree.ForEachNode(word, [&](int i, int32_t node, int code) {
    path.nodes[i] = node;
    path.code[i] = static_cast<char>('0' + code);
  });
  return path;
}

// Without equal counts there is one tree: gensim's, worked out by hand.
TEST(HuffmanTreeTest, JoinsTheLeastFrequentFirst) {
  const HuffmanTree tree(std::vector<int64_t>{51, 30, 12, 5, 3});
  EXPECT_EQ(tree.longest(), 4);
  EXPECT_EQ(PathOf(tree, 0).code, "1");
  EXPECT_EQ(PathOf(tree, 1).code, "01");
  EXPECT_EQ(PathOf(tree, 2).code, "001");
  EXPECT_EQ(PathOf(tree, 3).code, "0001");
  EXPECT_EQ(PathOf(tree, 4).code, "0000");
  EXPECT_THAT(PathOf(tree, 4).nodes, ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(PathOf(tree, 1).nodes, ElementsAre(3, 2));
}

TEST(HuffmanTreeTest, OfOneWordHasAnEmptyPath) {
  const HuffmanTree tree(std::vector<int64_t>{5});
  EXPECT_EQ(tree.longest(), 0);
  EXPECT_EQ(PathOf(tree, 0).code, "");
}

TEST(HuffmanTreeTest, OfTwoWordsHasOneNode) {
  const HuffmanTree tree(std::vector<int64_t>{5, 5});
  EXPECT_THAT(PathOf(tree, 0).nodes, ElementsAre(0));
  EXPECT_THAT(PathOf(tree, 1).nodes, ElementsAre(0));
  EXPECT_NE(PathOf(tree, 0).code, PathOf(tree, 1).code);
}

TEST(HuffmanTreeTest, OfEqualCountsIsAsLowAsCanBe) {
  EXPECT_EQ(HuffmanTree(std::vector<int64_t>(1024, 7)).longest(), 10);
  EXPECT_EQ(HuffmanTree(std::vector<int64_t>(1025, 7)).longest(), 11);
  EXPECT_EQ(HuffmanTree(std::vector<int64_t>{2, 1, 1, 1, 1}).longest(), 3);
}

// The sum of counts times lengths of any Huffman tree.
int64_t LeastCost(const std::vector<int64_t>& counts) {
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> heap(
      counts.begin(), counts.end());
  int64_t cost = 0;
  while (heap.size() > 1) {
    int64_t sum = heap.top();
    heap.pop();
    sum += heap.top();
    heap.pop();
    cost += sum;
    heap.push(sum);
  }
  return cost;
}

TEST(HuffmanTreeTest, IsAPrefixCodeOfLeastCost) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> counts(2 + random.Below(60));
    const uint64_t most = round % 2 == 0 ? 5 : 1'000'000;
    for (int64_t& count : counts) count = 1 + random.Below(most);
    std::sort(counts.rbegin(), counts.rend());
    const HuffmanTree tree(counts);
    int64_t cost = 0;
    double kraft = 0;
    std::set<std::string> codes;
    for (int32_t word = 0; word < tree.words(); ++word) {
      const Path path = PathOf(tree, word);
      cost += counts[word] * tree.length(word);
      kraft += std::pow(0.5, tree.length(word));
      codes.insert(path.code);
      EXPECT_EQ(path.nodes[0], tree.words() - 2);
      EXPECT_LE(tree.length(word), tree.longest());
      // Nodes are numbered as they are made: parents later.
      EXPECT_TRUE(std::is_sorted(path.nodes.rbegin(), path.nodes.rend()));
    }
    ASSERT_EQ(cost, LeastCost(counts));
    ASSERT_EQ(kraft, 1);
    ASSERT_EQ(codes.size(), counts.size());
  }
}

TEST(HuffmanTreeTest, OfFibonacciNumbersIsAsHighAsCountsAllow) {
  std::vector<int64_t> counts = {1, 1};
  int64_t sum = 2;
  while (sum <= std::numeric_limits<int64_t>::max() - counts.back() -
                    counts[counts.size() - 2]) {
    counts.push_back(counts.back() + counts[counts.size() - 2]);
    sum += counts.back();
  }
  std::reverse(counts.begin(), counts.end());
  const HuffmanTree tree(counts);
  EXPECT_EQ(tree.longest(), static_cast<int>(counts.size()) - 1);
  EXPECT_LE(tree.longest(), HuffmanTree::kMaxLength);
  EXPECT_EQ(tree.length(0), 1);
}

}  // namespace
}  // namespace onestep
