// SPDX-License-Identifier: Apache-2.0
// For the tests of the hidden-split step: a network with its data, the same in
// float64, and one whose steps are launches on the emulator.
#ifndef ONESTEP_TESTS_KERNELS_HIDDEN_SPLIT_NET_H_
#define ONESTEP_TESTS_KERNELS_HIDDEN_SPLIT_NET_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cuda/hidden_split/hidden_split.h"
#include "kernels/reference.h"
#include "tests/cuda_emulator/emulator.h"

namespace onestep::cuda {

inline constexpr int kImages = 200;
inline constexpr int kSteps = 20;

struct Weights {
  std::vector<float> w1, b1, w2, b2;
  friend bool operator==(const Weights&, const Weights&) = default;
};
struct Results {
  std::vector<float> loss, correct;  // [steps, models]
  Weights weights;
  friend bool operator==(const Results&, const Results&) = default;
};

// A network, its data and the order of `steps` batches.
struct Problem {
  HiddenSplitShape shape;
  int steps = kSteps;
  std::vector<uint8_t> images = {};
  std::vector<int32_t> labels = {}, indices = {};
  std::vector<float> lr = {};  // of each step, [steps, models]
  Weights weights = {};
};

inline Problem MakeProblem(const HiddenSplitShape& shape, int steps = kSteps) {
  Problem problem = {.shape = shape, .steps = steps};
  problem.shape.alpha = 1.0f / 255;
  std::mt19937 random(7);
  problem.images.resize(kImages * shape.features);
  for (uint8_t& pixel : problem.images) {
    pixel = random() % 4 == 0 ? random() % 256 : 0;
  }
  problem.labels.resize(kImages);
  for (int32_t& label : problem.labels) label = random() % shape.classes;
  problem.indices.resize(steps * shape.batch);
  for (int32_t& index : problem.indices) index = random() % kImages;
  for (int s = 0; s < steps; ++s) problem.lr.push_back(0.05f * (1 + s % 3));
  const auto normal = [&random](int64_t n, float deviation) {
    std::normal_distribution<float> distribution(0, deviation);
    std::vector<float> values(n);
    for (float& value : values) value = distribution(random);
    return values;
  };
  problem.weights = {
      normal(shape.features * shape.hidden, 0.05f), normal(shape.hidden, 0.1f),
      normal(shape.hidden * shape.classes, 0.1f), normal(shape.classes, 0.1f)};
  return problem;
}

inline double Activate(Activation act, double v) {
  reference::Activate(act, &v, &v, 1);
  return v;
}
inline double ActivateGrad(Activation act, double h) {
  double dx = 1;
  reference::ActivateGrad(act, &h, &dx, &dx, 1);
  return dx;
}

// The same network in float64.
class Reference {
 public:
  explicit Reference(const Problem& problem)
      : problem_(problem),
        shape_(problem.shape),
        w1_(Wide(problem.weights.w1)),
        b1_(Wide(problem.weights.b1)),
        w2_(Wide(problem.weights.w2)),
        b2_(Wide(problem.weights.b2)) {}

  Results Run() {
    Results results;
    for (int s = 0; s < problem_.steps; ++s) Step(s, results);
    results.weights = {Narrow(w1_), Narrow(b1_), Narrow(w2_), Narrow(b2_)};
    return results;
  }

 private:
  using Values = std::vector<double>;
  static Values Wide(const std::vector<float>& v) {
    return Values(v.begin(), v.end());
  }
  static std::vector<float> Narrow(const Values& v) {
    return std::vector<float>(v.begin(), v.end());
  }

  void Step(int s, Results& results) {
    const int64_t batch = shape_.batch, hidden = shape_.hidden;
    const int64_t classes = shape_.classes, features = shape_.features;
    double loss = 0;
    int correct = 0;
    Values dw1(w1_.size()), db1(hidden), dw2(w2_.size()), db2(classes);
    for (int64_t r = 0; r < batch; ++r) {
      const int32_t index = problem_.indices[s * batch + r];
      const int32_t label = problem_.labels[index];
      const uint8_t* bytes = &problem_.images[index * features];
      Values h = b1_, z = b2_, d(classes);
      for (int64_t k = 0; k < features; ++k) {
        for (int64_t j = 0; bytes[k] != 0 && j < hidden; ++j) {
          h[j] += shape_.alpha * bytes[k] * w1_[k * hidden + j];
        }
      }
      for (double& v : h) v = Activate(shape_.act, v);
      for (int64_t i = 0; i < hidden * classes; ++i) {
        z[i % classes] += h[i / classes] * w2_[i];
      }
      const auto largest = std::max_element(z.begin(), z.end());
      double total = 0;
      for (double v : z) total += std::exp(v - *largest);
      loss += std::log(total) + *largest - z[label];
      correct += largest - z.begin() == label;
      for (int64_t c = 0; c < classes; ++c) {
        d[c] = problem_.lr[s] / batch *
               ((c == label) - std::exp(z[c] - *largest) / total);
        db2[c] += d[c];
      }
      for (int64_t j = 0; j < hidden; ++j) {
        double e = 0;
        for (int64_t c = 0; c < classes; ++c) {
          e += d[c] * w2_[j * classes + c];
          dw2[j * classes + c] += h[j] * d[c];
        }
        e *= ActivateGrad(shape_.act, h[j]);
        db1[j] += e;
        for (int64_t k = 0; e != 0 && k < features; ++k) {
          dw1[k * hidden + j] += shape_.alpha * bytes[k] * e;
        }
      }
    }
    results.loss.push_back(loss / batch);
    results.correct.push_back(correct);
    Add(dw1, w1_);
    Add(db1, b1_);
    Add(dw2, w2_);
    Add(db2, b2_);
  }
  static void Add(const Values& from, Values& to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }

  const Problem& problem_;
  const HiddenSplitShape& shape_;
  Values w1_, b1_, w2_, b2_;
};

// The network where the kernels have it, and launches of them.
class Trainer {
 public:
  Trainer(CudaTier tier, const Problem& problem,
          const DeviceLimits& limits = {})
      : plan_(PlanHiddenSplit(tier, problem.shape, limits)),
        problem_(problem),
        results_{std::vector<float>(problem.steps * problem.shape.models, -1),
                 std::vector<float>(problem.steps * problem.shape.models, -1),
                 problem.weights},
        workspace_(plan_.workspace_bytes / 4) {
    EXPECT_EQ(plan_.refusal, "");
    Weights& weights = results_.weights;
    buffers_ = {.images = problem.images.data(),
                .labels = problem.labels.data(),
                .indices = problem.indices.data(),
                .indices_stride = problem.shape.batch,
                .lr = problem.lr.data(),
                .lr_stride = problem.shape.models,
                .w1 = weights.w1.data(),
                .b1 = weights.b1.data(),
                .w2 = weights.w2.data(),
                .b2 = weights.b2.data(),
                .loss = results_.loss.data(),
                .loss_stride = problem.shape.models,
                .correct = results_.correct.data(),
                .correct_stride = problem.shape.models,
                .control = &control_,
                .workspace = workspace_.data()};
  }

  // A chain of launches for the next `steps` steps, as one graph would have.
  absl::Status Run(int64_t steps) {
    absl::Status status;
    const auto launch = [&](const Launch& launch) {
      if (status.ok()) status = Emulate(launch, seed);
    };
    if (plan_.tier == CudaTier::kPersistent) {
      launch(HiddenSplitPersistent(plan_, buffers_, control_.step, steps,
                                   {stop, &progress, timeout_ns}));
    } else {
      for (int64_t i = 0; i < steps; ++i) {
        launch(HiddenSplitForward(plan_, buffers_, i));
        launch(HiddenSplitLoss(plan_, buffers_, i));
        launch(HiddenSplitBackward(plan_, buffers_, i));
      }
    }
    control_.step += steps;
    return status;
  }

  HiddenSplitBuffers& buffers() { return buffers_; }
  const HiddenSplitPlan& plan() const { return plan_; }
  const Results& results() const { return results_; }

  uint64_t seed = 1;
  const uint32_t* stop = &never_;
  uint32_t progress = 0;
  uint64_t timeout_ns = 1000000000;

 private:
  const HiddenSplitPlan plan_;
  const Problem& problem_;
  Results results_;
  HiddenSplitBuffers buffers_ = {};
  StepControl control_ = {};
  uint32_t never_ = 0;
  std::vector<float> workspace_;
};

}  // namespace onestep::cuda

#endif  // ONESTEP_TESTS_KERNELS_HIDDEN_SPLIT_NET_H_
