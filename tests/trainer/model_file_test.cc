// SPDX-License-Identifier: Apache-2.0
#include "trainer/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "tests/status_matchers.h"
#include "trainer/checkpoint.h"

namespace onestep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ModelFileTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = testing::TempDir() + "model_file_" +
           testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(dir_);
    path_ = dir_ + "/model.safetensors";
    ASSERT_OK_AND_ASSIGN(params_, InitParams(model_, Init::kHe, 7));
    ASSERT_OK(WriteModel(path_, model_, params_, {2, 15, 7}));
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  // Writes the file again, changed.
  template <typename Change>
  void Rewrite(Change change) {
    absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(path_);
    ASSERT_OK(checkpoint);
    change(*checkpoint);
    ASSERT_OK(WriteCheckpoint(path_, *checkpoint));
  }

  void ExpectCorrupt(const std::string& message) {
    EXPECT_THAT(ReadModel(path_),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr(path_ + ": "), HasSubstr(message))));
  }

  const ModelSpec model_ = {{6, 4, 3}, Activation::kGelu, Loss::kMse};
  std::vector<Tensor> params_;
  std::string dir_, path_;
};

TEST_F(ModelFileTest, WhatIsWrittenIsReadBack) {
  for (const std::string& path : {path_, dir_}) {
    ASSERT_OK_AND_ASSIGN(const LoadedModel loaded, ReadModel(path));
    EXPECT_EQ(loaded.path, path_);
    EXPECT_EQ(loaded.model.ToString(), "6-4-3");
    EXPECT_EQ(loaded.model.activation, Activation::kGelu);
    EXPECT_EQ(loaded.model.loss, Loss::kMse);
    ASSERT_EQ(loaded.params.size(), params_.size());
    for (size_t i = 0; i < params_.size(); ++i) {
      EXPECT_EQ(loaded.params[i].name, params_[i].name);
      EXPECT_EQ(std::memcmp(loaded.params[i].data.data(),
                            params_[i].data.data(), params_[i].data.bytes()),
                0);
    }
  }
}

TEST_F(ModelFileTest, AMissingFileIsNotFound) {
  EXPECT_THAT(ReadModel(dir_ + "/none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

TEST_F(ModelFileTest, WeightsThatAreNotFiniteAreRefused) {
  Rewrite([](Checkpoint& c) {
    c.tensors[1].values[0] = std::numeric_limits<float>::quiet_NaN();
  });
  ExpectCorrupt("tensor b1: want finite values");
}

TEST_F(ModelFileTest, AFileOfAnotherProgramIsRefused) {
  Rewrite([](Checkpoint& c) { c.metadata.erase("format"); });
  ExpectCorrupt("metadata: want format, got none");
  Rewrite([](Checkpoint& c) { c.metadata["format"] = "pt"; });
  ExpectCorrupt("want format onestep, got 'pt'");
}

TEST_F(ModelFileTest, WrongMetadataIsNamed) {
  Rewrite([](Checkpoint& c) { c.metadata["activation"] = "swish"; });
  ExpectCorrupt("activation: want relu|tanh|sigmoid|gelu, got 'swish'");
  Rewrite([](Checkpoint& c) {
    c.metadata["activation"] = "relu";
    c.metadata["input_scale"] = "1";
  });
  ExpectCorrupt("input_scale");
  Rewrite([](Checkpoint& c) { c.metadata["model"] = "6"; });
  ExpectCorrupt("metadata: model: want two widths");
}

TEST_F(ModelFileTest, AHugeModelInTheMetadataIsRefusedWithoutMakingIt) {
  Rewrite([](Checkpoint& c) { c.metadata["model"] = "16777216-16777216-3"; });
  ExpectCorrupt("want at most 268435456 parameters");
}

TEST_F(ModelFileTest, ATensorOfAnotherShapeIsNamed) {
  Rewrite([](Checkpoint& c) { c.tensors[0].dims = {4, 6}; });
  ExpectCorrupt("tensor w1: want f32[6,4], got f32[4,6]");
}

TEST_F(ModelFileTest, AMissingTensorIsNamed) {
  Rewrite([](Checkpoint& c) { c.tensors[3].name = "b9"; });
  ExpectCorrupt("tensor b2: want f32[3], got none");
}

}  // namespace
}  // namespace onestep
