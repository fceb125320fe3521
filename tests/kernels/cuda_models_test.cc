// SPDX-License-Identifier: Apache-2.0
// Launches over models against a launch for each: bit by bit, also where one
// model's values are not finite.
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/cuda_kernel_test.h"

namespace onestep::cuda {
namespace {

constexpr int64_t kModels = 3;

struct Operand {
  int64_t floats;  // of a model
  bool shared = false;
};

// The operands of one launch, of all models one after the other.
class Arena {
 public:
  Arena(const std::vector<Operand>& operands, int64_t workspace_bytes)
      : operands_(operands), workspace_bytes_(workspace_bytes) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const int64_t models = operands[i].shared ? 1 : kModels;
      values_.push_back(RandomFloats(models * operands[i].floats, 0.1f, 1,
                                     static_cast<int>(i) + 1));
    }
    if (!operands[0].shared) {
      values_[0][operands[0].floats] = std::numeric_limits<float>::quiet_NaN();
    }
    for (int64_t m = 0; m < kModels; ++m) workspaces_.emplace_back(0);
    all_workspaces_ = Workspace(kModels * workspace_bytes);
  }

  // Of operand i: for all models, or where `model` is one, alone.
  PerModel<float> At(int i) {
    const int64_t n = operands_[i].floats;
    const bool shared = operands_[i].shared;
    if (model < 0) {
      const int64_t stride = shared ? 0 : n * int64_t{sizeof(float)};
      return {values_[i].data(), stride};
    }
    return values_[i].data() + (shared ? 0 : model * n);
  }
  void* workspace() {
    if (model < 0) return all_workspaces_.data();
    workspaces_[model] = Workspace(workspace_bytes_);
    return workspaces_[model].data();
  }
  std::vector<std::vector<float>> Values() const {
    std::vector<std::vector<float>> all;
    for (const Floats& values : values_) all.push_back(values.Values());
    return all;
  }

  int64_t model = -1;  // all

 private:
  const std::vector<Operand> operands_;
  const int64_t workspace_bytes_;
  std::vector<Floats> values_;
  Workspace all_workspaces_{0};
  std::vector<Workspace> workspaces_;
};

void ExpectBitsOfEach(const std::vector<Operand>& operands,
                      const std::function<Launch(Arena&)>& launch,
                      int64_t workspace_bytes = 0) {
  Arena together(operands, workspace_bytes), apart(operands, workspace_bytes);
  Launch all = launch(together);
  SCOPED_TRACE(all.name);
  all.grid.z = kModels;
  RunLaunch(all, 1);
  for (apart.model = 0; apart.model < kModels; ++apart.model) {
    RunLaunch(launch(apart), 2);
  }
  const auto got = together.Values(), want = apart.Values();
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(std::memcmp(got[i].data(), want[i].data(),
                          want[i].size() * sizeof(float)),
              0)
        << "operand " << i;
  }
}

// Sizes for four elements at once, and for one.
TEST(CudaModelsTest, ElementsOfEachModelAreItsOwn) {
  for (const int64_t n : {10, 1028}) {
    const Operand x = {n}, one = {1};
    ExpectBitsOfEach(
        {x, x}, [=](Arena& at) { return Scale(at.At(0), 0.5f, at.At(1), n); });
    ExpectBitsOfEach({x, one, x}, [=](Arena& at) {
      return MulScalar(at.At(0), at.At(1), 2, at.At(2), n);
    });
    ExpectBitsOfEach({x, {n, true}, x}, [=](Arena& at) {
      return Add(at.At(0), at.At(1), at.At(2), n);
    });
    ExpectBitsOfEach({x, x, x}, [=](Arena& at) {
      return Mul(at.At(0), at.At(1), at.At(2), n);
    });
    ExpectBitsOfEach({x}, [=](Arena& at) {
      return Activate(Activation::kTanh, at.At(0), at.At(0), n);
    });
    ExpectBitsOfEach({x, x, x}, [=](Arena& at) {
      return ActivateGrad(Activation::kGelu, at.At(0), at.At(1), at.At(2), n);
    });
    ExpectBitsOfEach({x, x, x}, [=](Arena& at) {
      return MseGrad(at.At(0), at.At(1), at.At(2), n, n);
    });
  }
}

TEST(CudaModelsTest, RowsOfEachModelAreItsOwn) {
  for (const auto& [rows, cols] :
       {std::pair<int64_t, int64_t>{7, 10}, {3, 8}}) {
    const Operand x = {rows * cols}, row = {cols};
    ExpectBitsOfEach({x, row, x}, [=, rows = rows, cols = cols](Arena& at) {
      return AddBias(at.At(0), at.At(1), at.At(2), rows, cols);
    });
    ExpectBitsOfEach({row, x}, [=, rows = rows, cols = cols](Arena& at) {
      return BroadcastRows(at.At(0), at.At(1), rows, cols);
    });
    ExpectBitsOfEach({x, {2 * rows}}, [=, rows = rows, cols = cols](Arena& at) {
      return SliceRows(at.At(0), at.At(1), rows, 8, 4 * cols);
    });
  }
}

// In one block, and in parts that blocks add up.
TEST(CudaModelsTest, SumsOverRowsAreOfOneModel) {
  for (const int64_t rows : {5, 2000}) {
    constexpr int64_t kCols = 10;
    const Operand x = {rows * kCols}, row = {kCols}, one = {1};
    const int64_t bytes = ColumnSumsWorkspaceBytes(rows, kCols);
    EXPECT_EQ(bytes > 0, rows > 5);
    ExpectBitsOfEach(
        {x, row},
        [=](Arena& at) {
          return ReduceRows(at.At(0), at.At(1), rows, kCols, at.workspace());
        },
        bytes);
    ExpectBitsOfEach(
        {x, x, row, x},
        [=](Arena& at) {
          return ActivationGrad(Activation::kRelu, at.At(0), at.At(1), at.At(2),
                                at.At(3), at.At(2), rows, kCols,
                                at.workspace());
        },
        bytes);
    ExpectBitsOfEach(
        {x, x, one},
        [=](Arena& at) {
          return MseLoss(at.At(0), at.At(1), at.At(2), rows * kCols, 7,
                         at.workspace());
        },
        ColumnSumsWorkspaceBytes(rows * kCols, 1));
  }
}

TEST(CudaModelsTest, LossesAreOfOneModel) {
  for (const int64_t rows : {5, 600}) {
    constexpr int64_t kCols = 10;
    const Operand x = {rows * kCols}, row = {kCols}, one = {1};
    const Ints labels = RandomInts(rows, kCols, 9);
    const int64_t bytes = LossWorkspaceBytes(rows, kCols);
    EXPECT_EQ(bytes > 0, rows > 5);
    ExpectBitsOfEach({x, x}, [=](Arena& at) {
      return Softmax(at.At(0), at.At(1), rows, kCols);
    });
    ExpectBitsOfEach({x, x, x}, [=](Arena& at) {
      return SoftmaxGrad(at.At(0), at.At(1), at.At(2), rows, kCols);
    });
    ExpectBitsOfEach({x, x}, [&](Arena& at) {
      return MinusOneHot(at.At(0), labels.data(), at.At(1), rows, kCols);
    });
    ExpectBitsOfEach(
        {x, one},
        [&](Arena& at) {
          return NllLoss(at.At(0), labels.data(), at.At(1), rows, kCols, rows,
                         at.workspace());
        },
        bytes);
    ExpectBitsOfEach(
        {x, one},
        [&](Arena& at) {
          return CountCorrect(at.At(0), labels.data(), at.At(1), rows, kCols,
                              at.workspace());
        },
        bytes);
    ExpectBitsOfEach(
        {x, one, row, one, one},
        [&](Arena& at) {
          LossGradParams p = {};
          p.logits = at.At(0);
          p.labels = labels.data();
          p.lr = at.At(1);
          p.bias = at.At(2);
          p.loss = at.At(3);
          p.dlogits = at.At(0);
          p.correct = at.At(4);
          p.db = at.At(2);
          p.rows = p.batch = rows;
          p.cols = kCols;
          p.workspace = at.workspace();
          return LossGrad(p);
        },
        bytes);
  }
}

// Operands: w, dw, the states, lr, step, and the last hyper-parameters, which
// each model may have of its own.
Launch UpdateOf(UpdateRule rule, int64_t n, Arena& at) {
  UpdateParams p = {};
  p.rule = rule;
  p.n = n;
  p.flag = true;
  p.w = at.At(0);
  p.dw = at.At(1);
  p.w_out = at.At(0);
  int next = 2;
  for (int i = 0; i < kMaxUpdateStates; ++i) {
    p.state[i] = at.At(next);
    p.state_out[i] = at.At(next++);
  }
  p.lr = at.At(next++);
  p.step = at.At(next++);
  constexpr float kHypers[kMaxUpdateHypers] = {0.9f, 0.999f, 1e-8f, 0.1f};
  for (int i = 0; i < kMaxUpdateHypers; ++i) p.hyper[i] = kHypers[i];
  // Those of Adam that have a correction are never read.
  for (int i = rule == UpdateRule::kAdam ? 2 : 0; i < kMaxUpdateHypers; ++i) {
    p.hyper[i] = In(at.At(next + i));
  }
  return Update(p);
}

TEST(CudaModelsTest, EachModelIsUpdatedByItsOwnHyperParameters) {
  for (const UpdateRule rule : kAllUpdateRules) {
    for (const int64_t n : {10, 1028}) {
      const Operand x = {n}, one = {1};
      std::vector<Operand> operands(2 + kMaxUpdateStates, x);
      operands.push_back(one);
      operands.push_back({1, true});
      operands.insert(operands.end(), kMaxUpdateHypers, one);
      ExpectBitsOfEach(operands,
                       [=](Arena& at) { return UpdateOf(rule, n, at); });
    }
  }
}

// A hyper-parameter that is read has the bits of one that is given.
TEST(CudaModelsTest, AHyperParameterMayBeRead) {
  const Floats w = RandomFloats(10, -1, 1, 1), dw = RandomFloats(10, -1, 1, 2);
  const Floats lr({0.3f}), decay({0.01f});
  Floats given(10), read(10);
  UpdateParams p = {};
  p.w = w.data();
  p.dw = dw.data();
  p.lr = lr.data();
  p.n = 10;
  p.hyper[0] = 0.01f;
  p.w_out = given.data();
  RunLaunch(Update(p), 1);
  p.hyper[0] = In(decay.data());
  p.w_out = read.data();
  RunLaunch(Update(p), 1);
  EXPECT_EQ(read.Values(), given.Values());
  EXPECT_NE(read.Values(), w.Values());
}

// The smallest tile and a large one, with bias and in place.
TEST(CudaModelsTest, MatricesMayShareTheFirst) {
  for (const int64_t m : {5, 300}) {
    constexpr int64_t kN = 10, kK = 33;
    for (const bool shared_a : {false, true}) {
      MatMulParams sizes = {};
      sizes.m = m;
      sizes.n = kN;
      sizes.k = kK;
      ExpectBitsOfEach({{kK * kN}, {m * kK, shared_a}, {kN}, {m * kN}},
                       [=](Arena& at) {
                         MatMulParams p = sizes;
                         p.b = at.At(0);
                         p.a = at.At(1);
                         p.bias = at.At(2);
                         p.y = at.At(3);
                         p.act = Activation::kRelu;
                         return MatMul(p);
                       });
      ExpectBitsOfEach({{kK * kN}, {m * kK, shared_a}, {m * kN}},
                       [=](Arena& at) {
                         MatMulParams p = sizes;
                         p.b = at.At(0);
                         p.a = at.At(1);
                         p.c = p.y = at.At(2);
                         p.trans_a = true;
                         return MatMul(p);
                       });
    }
  }
}

}  // namespace
}  // namespace onestep::cuda
