// SPDX-License-Identifier: Apache-2.0
// Twenty steps against files that an independent NumPy program wrote
// (make_golden.py, which also says what is in them).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/compiler.h"
#include "tests/run_chain.h"
#include "tests/status_matchers.h"
#include "trainer/config.h"
#include "trainer/model.h"

namespace onestep {
namespace {

template <typename E>
E Named(const std::string& text) {
  for (const auto& named : Names<E>()) {
    if (named.name == text) return named.value;
  }
  ADD_FAILURE() << text;
  return {};
}

// One golden file, and the memory of a run of it.
class Golden {
 public:
  explicit Golden(const std::string& name) {
    std::ifstream in("tests/golden/" + name + ".json");
    EXPECT_TRUE(in.good()) << name;
    json_ = nlohmann::json::parse(in);
    model_.widths = Array<int64_t>("widths");
    model_.activation = Named<Activation>(json_["activation"]);
    model_.loss = Named<Loss>(json_["loss"]);
    optimizer_.kind = Named<OptimizerKind>(json_["optimizer"]);
    optimizer_.momentum = json_["momentum"];
    optimizer_.nesterov = json_["nesterov"];
    optimizer_.weight_decay = json_["weight_decay"];
    images_ = Array<uint8_t>("images");
    labels_ = Array<int32_t>("labels");
    indices_ = Array<int32_t>("indices");
    lr_ = Array<float>("lr");
    steps_ = json_["steps"];
    for (int64_t i = 0; i < steps_; ++i) count_.push_back(i + 1);
    losses_.resize(steps_);
    correct_.resize(steps_);
    state_ = InitOptimizerState(model_, optimizer_).value();
    params_ = InitParams(model_, Init::kHe, 1).value();
    for (const auto& tensor : json_["initial"]) {
      float* const data = Find(tensor["name"]).data.as<float>();
      const auto values = tensor["data"].get<std::vector<float>>();
      std::copy(values.begin(), values.end(), data);
    }
  }

  void Run(const CompileOptions& options) {
    ASSERT_OK_AND_ASSIGN(
        Graph graph,
        BuildTrainStep(model_, optimizer_, json_["rows"], json_["batch"]));
    ASSERT_OK_AND_ASSIGN(Compiled compiled, Compile(std::move(graph), options));
    Executable& e = *compiled.executable;
    for (std::vector<Tensor>* tensors : {&params_, &state_}) {
      for (Tensor& t : *tensors) ASSERT_OK(e.Bind(t.name, t.data.data()));
    }
    const int64_t batch = json_["batch"];
    ASSERT_OK(e.Bind("images", images_.data(), 0));
    ASSERT_OK(e.Bind("labels", labels_.data(), 0));
    ASSERT_OK(e.Bind("indices", indices_.data(), batch * sizeof(int32_t)));
    ASSERT_OK(e.Bind("lr", lr_.data(), sizeof(float)));
    if (compiled.graph.FindLeaf("step") != nullptr) {
      ASSERT_OK(e.Bind("step", count_.data(), sizeof(float)));
    }
    ASSERT_OK(e.Bind("loss", losses_.data(), sizeof(float)));
    ASSERT_OK(e.Bind("correct", correct_.data(), sizeof(float)));
    ASSERT_OK(e.Run(steps_));
  }

  void Compare() {
    const auto want = Array<double>("loss_values");
    const auto want_correct = Array<double>("correct");
    for (int64_t i = 0; i < steps_; ++i) {
      // fp32 against fp64 over 20 steps of a net of order one.
      EXPECT_NEAR(losses_[i], want[i], 2e-5 * (1 + want[i])) << "step " << i;
      EXPECT_EQ(correct_[i], want_correct[i]) << "step " << i;
    }
    for (const auto& tensor : json_["final"]) {
      const auto values = tensor["data"].get<std::vector<double>>();
      const Tensor& got = Find(tensor["name"]);
      const float* const x = got.data.as<float>();
      ASSERT_EQ(static_cast<int64_t>(values.size()), got.num_elements());
      EXPECT_LE(Nmse({x, x + values.size()}, values), 1e-9) << got.name;
    }
  }

 private:
  template <typename T>
  std::vector<T> Array(const char* key) const {
    return json_.at(key).get<std::vector<T>>();
  }

  Tensor& Find(const std::string& name) {
    for (std::vector<Tensor>* tensors : {&params_, &state_}) {
      for (Tensor& t : *tensors) {
        if (t.name == name) return t;
      }
    }
    ADD_FAILURE() << "no tensor " << name;
    return params_[0];
  }

  nlohmann::json json_;
  ModelSpec model_;
  OptimizerSpec optimizer_;
  std::vector<Tensor> params_, state_;
  std::vector<uint8_t> images_;
  std::vector<int32_t> labels_, indices_;
  std::vector<float> lr_, count_, losses_, correct_;
  int64_t steps_ = 0;
};

class GoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTest, EveryLoweringGivesTheLossesOfNumPy) {
  for (bool fuse : {false, true}) {
    for (Kernels kernels :
         {Kernels::kAuto, Kernels::kOnednn, Kernels::kLoops}) {
      for (int threads : {1, 2}) {
        SCOPED_TRACE(testing::Message()
                     << "fuse " << fuse << " kernels " << ToString(kernels)
                     << " threads " << threads);
        CompileOptions options;
        options.fuse = fuse;
        options.kernels = kernels;
        options.threads = threads;
        Golden golden(GetParam());
        golden.Run(options);
        golden.Compare();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenTest,
                         testing::Values("sgd", "adam", "adamw", "nesterov",
                                         "linear"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace onestep
