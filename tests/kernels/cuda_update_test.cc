// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference.h"
#include "tests/kernels/cuda_kernel_test.h"

namespace onestep::cuda {
namespace {

// Some of any rule: betas, an epsilon and a decay of Adam.
constexpr float kHypers[kMaxUpdateHypers] = {0.9f, 0.999f, 1e-8f, 0.1f};

struct UpdateCase {
  UpdateRule rule;
  float step;
  bool flag;
};

// Operands of an update; the state is that of an optimizer that has run.
struct Operands {
  explicit Operands(int64_t n)
      : n(n), w(RandomFloats(n, -1, 1, 1)), dw(RandomFloats(n, -1, 1, 2)) {
    for (int i = 0; i < kMaxUpdateStates; ++i) {
      state.push_back(RandomFloats(n, 0, 0.1f, 3 + i));
    }
  }

  int64_t n;
  Floats w, dw;
  std::vector<Floats> state;
};

// w', then each of the states; one that the rule has not stays as it is.
std::vector<std::vector<double>> Want(const Operands& o, const UpdateCase& c,
                                      float lr) {
  std::vector<std::vector<double>> all = {o.w.Doubles()};
  for (const Floats& state : o.state) all.push_back(state.Doubles());
  const std::vector<double> dw = o.dw.Doubles();
  reference::UpdateArgs args = {};
  args.w = args.w_out = all[0].data();
  args.dw = dw.data();
  for (int i = 0; i < kMaxUpdateStates; ++i) {
    args.state[i] = args.state_out[i] = all[1 + i].data();
  }
  args.lr = lr;
  args.step = c.step;
  std::copy(std::begin(kHypers), std::end(kHypers), args.hyper);
  args.flag = c.flag;
  args.n = o.n;
  reference::Update(c.rule, args);
  return all;
}

void ExpectMatches(const Operands& o, const UpdateCase& c) {
  SCOPED_TRACE(testing::Message() << "rule " << static_cast<int>(c.rule) << ", "
                                  << o.n << ", step " << c.step);
  const Floats lr({0.03f}), step({c.step});
  const auto got = OnAnyOrder([&](uint64_t seed) {
    Operands out = o;
    UpdateParams p = {};
    p.rule = c.rule;
    p.w = p.w_out = out.w.data();
    p.dw = out.dw.data();
    for (int i = 0; i < kMaxUpdateStates; ++i) {
      p.state[i] = p.state_out[i] = out.state[i].data();
    }
    p.lr = lr.data();
    p.step = step.data();
    std::copy(std::begin(kHypers), std::end(kHypers), p.hyper);
    p.flag = c.flag;
    p.n = o.n;
    RunLaunch(Update(p), seed);
    std::vector<float> all = out.w.Values();
    for (const Floats& state : out.state) {
      const std::vector<float> values = state.Values();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  });
  // One by one: their norms are not alike.
  auto next = got.begin();
  for (const std::vector<double>& want : Want(o, c, lr[0])) {
    ExpectNmse({next, next + o.n}, want);
    next += o.n;
  }
}

TEST(CudaUpdateTest, EveryRuleMatchesFloat64InPlace) {
  for (UpdateRule rule : kAllUpdateRules) {
    for (int64_t n : kElements) {
      for (bool flag : {false, true}) {
        ExpectMatches(Operands(n), {rule, 3, flag});
      }
    }
  }
}

// From where 1 - beta2^step is 0.001 to where it is 1; weights of 0 show what
// is subtracted from them.
TEST(CudaUpdateTest, AdamIsExactAtAnyStep) {
  for (float step : {1.0f, 2.0f, 5.0f, 6.0f, 100.0f, 499.0f, 520.0f, 1e5f}) {
    Operands o(129);
    std::fill(o.w.begin(), o.w.end(), 0.0f);
    ExpectMatches(o, {UpdateRule::kAdam, step, false});
  }
}

}  // namespace
}  // namespace onestep::cuda
