// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference.h"
#include "tests/kernels/cuda_kernel_test.h"

namespace onestep::cuda {
namespace {

// Operands of an update; the state is that of an optimizer that has run.
struct Operands {
  explicit Operands(int64_t n)
      : n(n),
        w(RandomFloats(n, -1, 1, 1)),
        dw(RandomFloats(n, -1, 1, 2)),
        m(RandomFloats(n, -0.1f, 0.1f, 3)),
        v(RandomFloats(n, 0, 0.1f, 4)) {}

  int64_t n;
  Floats w, dw, m, v;
};

std::vector<float> Joined(const Floats& a, const Floats& b) {
  std::vector<float> all = a.Values();
  const std::vector<float> more = b.Values();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(CudaUpdateTest, SgdMatchesFloat64InPlace) {
  const Floats lr({0.37f});
  for (int64_t n : kElements) {
    const Operands o(n);
    std::vector<double> want(static_cast<size_t>(n));
    reference::SgdUpdate(o.w.Doubles().data(), o.dw.Doubles().data(), lr[0],
                         0.01f, want.data(), n);
    ExpectNmse(OnAnyOrder([&](uint64_t seed) {
                 Floats w = o.w;
                 RunLaunch(SgdUpdate(w.data(), o.dw.data(), lr.data(), 0.01f,
                                     w.data(), n),
                           seed);
                 return w.Values();
               }),
               want);
  }
}

TEST(CudaUpdateTest, MomentumMatchesFloat64InPlace) {
  const Floats lr({0.37f});
  for (int64_t n : kElements) {
    for (bool nesterov : {false, true}) {
      const Operands o(n);
      std::vector<double> want(static_cast<size_t>(2 * n));
      reference::MomentumUpdate(o.w.Doubles().data(), o.dw.Doubles().data(),
                                o.m.Doubles().data(), lr[0], 0.9f, nesterov,
                                0.01f, want.data(), want.data() + n, n);
      ExpectNmse(OnAnyOrder([&](uint64_t seed) {
                   Floats w = o.w, v = o.m;
                   RunLaunch(MomentumUpdate(w.data(), o.dw.data(), v.data(),
                                            lr.data(), 0.9f, nesterov, 0.01f,
                                            w.data(), v.data(), n),
                             seed);
                   return Joined(w, v);
                 }),
                 want);
    }
  }
}

struct AdamCase {
  float step;
  bool decoupled;
};

// w', then m' and v', whose norms are much smaller.
void ExpectAdam(const Operands& o, const AdamCase& c) {
  SCOPED_TRACE(testing::Message() << o.n << ", step " << c.step);
  constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEps = 1e-8f, kDecay = 0.1f;
  const Floats lr({0.03f}), step({c.step});
  const auto size = static_cast<size_t>(o.n);
  std::vector<double> w(size), m(size), v(size);
  reference::AdamUpdate(o.w.Doubles().data(), o.dw.Doubles().data(),
                        o.m.Doubles().data(), o.v.Doubles().data(), lr[0],
                        c.step, kBeta1, kBeta2, kEps, kDecay, c.decoupled,
                        w.data(), m.data(), v.data(), o.n);
  Floats mv(2 * o.n);
  const auto got = OnAnyOrder([&](uint64_t seed) {
    Floats w_out = o.w, m_out = o.m, v_out = o.v;
    RunLaunch(AdamUpdate({w_out.data(), o.dw.data(), m_out.data(), v_out.data(),
                          lr.data(), step.data(), kBeta1, kBeta2, kEps, kDecay,
                          c.decoupled, w_out.data(), m_out.data(), v_out.data(),
                          o.n}),
              seed);
    std::copy(m_out.begin(), m_out.end(), mv.begin());
    std::copy(v_out.begin(), v_out.end(), mv.begin() + o.n);
    return Joined(w_out, mv);
  });
  ExpectNmse({got.begin(), got.begin() + o.n}, w);
  ExpectNmse({got.begin() + o.n, got.begin() + 2 * o.n}, m);
  ExpectNmse({got.begin() + 2 * o.n, got.end()}, v);
}

TEST(CudaUpdateTest, AdamMatchesFloat64InPlace) {
  for (int64_t n : kElements) {
    for (bool decoupled : {false, true}) {
      ExpectAdam(Operands(n), {3, decoupled});
    }
  }
}

// From where 1 - beta2^step is 0.001 to where it is 1; weights of 0 show what
// is subtracted from them.
TEST(CudaUpdateTest, AdamIsExactAtAnyStep) {
  for (float step : {1.0f, 2.0f, 5.0f, 6.0f, 100.0f, 499.0f, 520.0f, 1e5f}) {
    Operands o(129);
    std::fill(o.w.begin(), o.w.end(), 0.0f);
    ExpectAdam(o, {step, false});
  }
}

}  // namespace
}  // namespace onestep::cuda
