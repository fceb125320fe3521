// SPDX-License-Identifier: Apache-2.0
// For the tests of kernels/cuda on the emulator: runs under several orders of
// threads and blocks, which must not change a bit, and comparison with the
// float64 oracle.
#ifndef ONESTEP_TESTS_KERNELS_CUDA_KERNEL_TEST_H_
#define ONESTEP_TESTS_KERNELS_CUDA_KERNEL_TEST_H_

#include <cstring>
#include <vector>

#include "kernels/kernels.h"
#include "tests/cuda_emulator/emulator.h"
#include "tests/kernels/cpu_kernel_test.h"
#include "tests/status_matchers.h"

namespace onestep::cuda {

// As in op_test.cc: the squared error of fp32 sums of a thousand terms stays
// near 1e-13 of the squared norm; the rest is for cancellation.
inline constexpr double kNmse = 1e-11;

inline void ExpectNmse(const std::vector<float>& got,
                       const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  double error = 0, norm = 0;
  size_t worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double diff = got[i] - want[i];
    error += diff * diff;
    norm += want[i] * want[i];
    if (!(std::fabs(diff) <= std::fabs(got[worst] - want[worst]))) worst = i;
  }
  EXPECT_LE(error, kNmse * norm)
      << "of " << want.size() << ", worst at " << worst << ": want "
      << want[worst] << ", got " << got[worst];
}

// What `f(seed)` gives for every seed; it starts from fresh memory each time.
template <class F>
std::vector<float> OnAnyOrder(F f) {
  const std::vector<float> first = f(1);
  for (uint64_t seed : {2, 3}) {
    const std::vector<float> other = f(seed);
    EXPECT_EQ(other.size(), first.size());
    EXPECT_EQ(
        std::memcmp(other.data(), first.data(), first.size() * sizeof(float)),
        0)
        << "seed " << seed;
  }
  return first;
}

inline void RunLaunch(const Launch& launch, uint64_t seed) {
  ASSERT_OK(Emulate(launch, seed));
  EXPECT_TRUE(launch.waits) << launch.name;
}

// Device memory that launches leave zeroed.
class Workspace {
 public:
  explicit Workspace(int64_t bytes)
      : words_(static_cast<size_t>(bytes / 4), 0) {}
  void* data() { return words_.empty() ? nullptr : words_.data(); }
  bool empty() const { return words_.empty(); }

 private:
  std::vector<uint32_t> words_;
};

// Scalar and vector paths, a part of a block and several blocks.
inline const int64_t kElements[] = {1,   2,   3,   7,    10,  17,
                                    127, 128, 129, 1000, 1283};

}  // namespace onestep::cuda

#endif  // ONESTEP_TESTS_KERNELS_CUDA_KERNEL_TEST_H_
