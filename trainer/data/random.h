// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_DATA_RANDOM_H_
#define ONESTEP_TRAINER_DATA_RANDOM_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace onestep {

// The one source of random numbers: SplitMix64 (Steele, Lea and Flood 2014,
// constants of https://prng.di.unimi.it/splitmix64.c). The standard library's
// distributions differ between libraries; these do not (Normal as far as
// log and cos of the C library agree). Not thread-safe.
//
// Streams of one seed are independent sequences, for uses that must not draw
// from each other. Stream 0 is the plain one; its high 32 bits name the use:
// 1 the row order of an epoch (split.cc), 2 the built-in data (synthetic.cc),
// 3 the weights (model.cc), 4 the trials of a search (search_space.cc), 5 the
// text with planted similarities (word2vec/synthetic_corpus.cc), 6 to 8 word
// vectors, shards and slices (word2vec/{embedding_tables,shards,
// word2vec_trainer}.cc).
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0)
      : state_(seed + Mix(stream)) {}

  // Uniform over all 64 bits.
  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15); }

  // Uniform in [0, 1), in steps of 2^-53.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  // Uniform in [low, high).
  double Uniform(double low, double high) {
    return low + (high - low) * Uniform();
  }

  // Mean 0, standard deviation 1 (Box and Muller 1958).
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return radius * std::cos(2 * std::numbers::pi * Uniform());
  }

  // Uniform in [0, n) without bias. REQUIRES: n > 0.
  uint64_t Below(uint64_t n) {
    CHECK(n > 0);
    // The first 2^64 mod n values would make some remainders more likely.
    // They are below n: others are spared the division.
    uint64_t x = Next();
    while (x < n && x < -n % n) x = Next();
    return x % n;
  }

  // 0..n-1 in an order drawn by Fisher and Yates' shuffle.
  // REQUIRES: 0 <= n < 2^31.
  std::vector<int32_t> Permutation(int64_t n) {
    CHECK(n >= 0 && n <= std::numeric_limits<int32_t>::max());
    std::vector<int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = n - 1; i > 0; --i) {
      std::swap(order[i], order[Below(i + 1)]);
    }
    return order;
  }

 private:
  // A bijection of 64 bits that maps 0 to 0.
  static constexpr uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  uint64_t state_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_DATA_RANDOM_H_
