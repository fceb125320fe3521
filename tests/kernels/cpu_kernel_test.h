// SPDX-License-Identifier: Apache-2.0
// For the tests of kernels/cpu: the fixture that runs a test once per
// instruction set, and arrays whose end is the end of a page.
#ifndef ONESTEP_TESTS_KERNELS_CPU_KERNEL_TEST_H_
#define ONESTEP_TESTS_KERNELS_CPU_KERNEL_TEST_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/targets.h"

namespace onestep {

// The parameter is the one target that dispatch may choose.
class CpuKernelTest : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

// Instantiates `suite` for every target compiled in that this CPU can run,
// and for the fallback, which SupportedTargets leaves out.
#define ONESTEP_INSTANTIATE_FOR_TARGETS(suite)                          \
  INSTANTIATE_TEST_SUITE_P(                                             \
      Targets, suite, testing::ValuesIn([] {                            \
        std::vector<int64_t> all = hwy::SupportedAndGeneratedTargets(); \
        all.push_back(HWY_STATIC_TARGET);                               \
        std::sort(all.begin(), all.end());                              \
        all.erase(std::unique(all.begin(), all.end()), all.end());      \
        return all;                                                     \
      }()),                                                             \
      [](const auto& info) {                                            \
        return std::string(hwy::TargetName(info.param));                \
      })

// n values that end where an unmapped page begins: a read or write past the
// end is a fault, masked lanes excepted. The alignment follows from n.
template <class T>
class Guarded {
 public:
  explicit Guarded(int64_t n, T value = T()) : size_(n) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = static_cast<size_t>(n) * sizeof(T);
    mapped_ = (bytes + page - 1) / page * page + page;
    base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) std::abort();
    char* guard = base_ + mapped_ - page;
    if (mprotect(guard, page, PROT_NONE) != 0) std::abort();
    data_ = reinterpret_cast<T*>(guard - bytes);
    std::fill(begin(), end(), value);
  }
  explicit Guarded(const std::vector<T>& values)
      : Guarded(static_cast<int64_t>(values.size())) {
    std::copy(values.begin(), values.end(), data_);
  }
  Guarded(std::initializer_list<T> values) : Guarded(std::vector<T>(values)) {}
  Guarded(const Guarded& other) : Guarded(other.Values()) {}
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(base_, mapped_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data_[i]; }
  T operator[](int64_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  std::vector<T> Values() const { return {data_, data_ + size_}; }
  std::vector<double> Doubles() const { return {data_, data_ + size_}; }

 private:
  int64_t size_;
  size_t mapped_;
  char* base_;
  T* data_;
};

using Floats = Guarded<float>;
using Ints = Guarded<int32_t>;

// Uniform in [low, high).
inline Floats RandomFloats(int64_t n, float low, float high, uint32_t seed) {
  std::mt19937 bits(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  Floats x(n);
  for (float& value : x) value = uniform(bits);
  return x;
}

// In [0, end).
inline Ints RandomInts(int64_t n, int32_t end, uint32_t seed) {
  std::mt19937 bits(seed);
  Ints x(n);
  for (int32_t& value : x) {
    value = static_cast<int32_t>(bits() % static_cast<uint32_t>(end));
  }
  return x;
}

// Every |got - want| is at most tolerance * max(1, |want|).
inline void ExpectNear(const Floats& got, const std::vector<double>& want,
                       double tolerance) {
  ASSERT_EQ(got.size(), static_cast<int64_t>(want.size()));
  for (int64_t i = 0; i < got.size(); ++i) {
    const double w = want[static_cast<size_t>(i)];
    const double bound = tolerance * std::max(1.0, std::fabs(w));
    ASSERT_LE(std::fabs(got[i] - w), bound)
        << "at " << i << " of " << got.size() << ": want " << w << ", got "
        << got[i];
  }
}

// Sizes around the 1, 4, 8 and 16 lanes and the blocks of the kernels.
inline const int64_t kSizes[] = {1, 2, 3, 7, 10, 16, 17, 127, 129};

}  // namespace onestep

#endif  // ONESTEP_TESTS_KERNELS_CPU_KERNEL_TEST_H_
