// SPDX-License-Identifier: Apache-2.0
// What a run leaves behind, and what can be done with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/status_matchers.h"
#include "tests/trainer/cli_fixture.h"
#include "trainer/checkpoint.h"

namespace onestep {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Gt;
using testing::HasSubstr;

class E2eTrainTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    WriteData("data", 300, 100);
  }

  // Trains with --json; the object it printed.
  json Train(std::vector<std::string> args) {
    args.insert(args.begin(), {"train", "--data", "data", "--json"});
    const CliResult result = Run(args);
    EXPECT_EQ(result.code, 0) << result.err;
    return json::parse(result.out, nullptr, false);
  }

  json Evaluate(const std::string& model) {
    const CliResult result = Run({"eval", model, "--data", "data", "--json"});
    EXPECT_EQ(result.code, 0) << result.err;
    return json::parse(result.out, nullptr, false);
  }
};

TEST_F(E2eTrainTest, OutHasModelsConfigurationLogAndGraph) {
  const json printed = Train({"--epochs", "3", "--out", "new/run"});
  const json config = json::parse(Read("new/run/config.json"));
  EXPECT_EQ(config, printed["config"]);
  EXPECT_THAT(Read("new/run/graph.txt"),
              AllOf(HasSubstr("graph {\n"), HasSubstr("update w1 = "),
                    HasSubstr("# step 1 ")));

  std::istringstream log(Read("new/run/log.jsonl"));
  std::vector<json> epochs;
  for (std::string line; std::getline(log, line);) {
    epochs.push_back(json::parse(line));
  }
  EXPECT_EQ(json(epochs), printed["epochs"]);

  for (const char* name : {"model.safetensors", "best.safetensors"}) {
    ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint,
                         ReadCheckpoint(Path("new/run/") + name));
    EXPECT_EQ(checkpoint.metadata.at("format"), "onestep");
    EXPECT_EQ(checkpoint.metadata.at("model"), "64-128-10");
    EXPECT_EQ(checkpoint.metadata.at("activation"), "relu");
    EXPECT_EQ(checkpoint.metadata.at("loss"), "cross-entropy");
    EXPECT_EQ(checkpoint.metadata.at("classes"), "10");
    EXPECT_EQ(std::stof(checkpoint.metadata.at("input_scale")), 1.0f / 255);
    ASSERT_EQ(checkpoint.tensors.size(), 4u);
    EXPECT_EQ(checkpoint.tensors[0].name, "w1");
    EXPECT_THAT(checkpoint.tensors[0].dims, testing::ElementsAre(64, 128));
    EXPECT_EQ(checkpoint.tensors[3].name, "b2");
  }
}

TEST_F(E2eTrainTest, BestIsTheEpochWithTheBestValidationAccuracy) {
  const json printed = Train({"--epochs", "6", "--lr", "2", "--out", "run"});
  int64_t best = 0;
  double accuracy = -1;
  for (const json& epoch : printed["epochs"]) {
    if (epoch["validation_accuracy"] > accuracy) {
      accuracy = epoch["validation_accuracy"];
      best = epoch["epoch"];
    }
  }
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint,
                       ReadCheckpoint(Path("run/best.safetensors")));
  EXPECT_EQ(checkpoint.metadata.at("epoch"), std::to_string(best));
}

// What is left to auto may differ where the machine is busy.
TEST_F(E2eTrainTest, EqualSettingsGiveEqualBytes) {
  for (const std::vector<std::string>& extra :
       {std::vector<std::string>{"--dispatch", "ops", "--input", "sparse"},
        std::vector<std::string>{"--dispatch", "ops", "--input", "dense",
                                 "--optimizer", "adam", "--lr", "0.01"},
        std::vector<std::string>{"--fuse", "off"}}) {
    std::string bytes[2];
    for (std::string& b : bytes) {
      std::vector<std::string> args = {"--epochs", "2",         "--out", "run",
                                       "--force",  "--threads", "2"};
      args.insert(args.end(), extra.begin(), extra.end());
      Train(args);
      b = Read("run/model.safetensors") + Read("run/best.safetensors");
    }
    EXPECT_GT(bytes[0].size(), 1000u);
    EXPECT_TRUE(bytes[0] == bytes[1]) << testing::PrintToString(extra);
  }
}

TEST_F(E2eTrainTest, AnotherSeedGivesAnotherModel) {
  Train({"--epochs", "1", "--out", "one", "--seed", "1"});
  Train({"--epochs", "1", "--out", "two", "--seed", "2"});
  EXPECT_NE(Read("one/model.safetensors"), Read("two/model.safetensors"));
}

TEST_F(E2eTrainTest, EvalReadsBackWhatTrainMeasured) {
  const json trained = Train({"--epochs", "3", "--out", "run"});
  const json eval = Evaluate("run");
  EXPECT_EQ(eval["accuracy"], trained["test_accuracy"]);
  EXPECT_EQ(eval["loss"], trained["test_loss"]);
  EXPECT_EQ(eval["rows"], 100);
  int64_t rows = 0, correct = 0;
  for (size_t c = 0; c < 10; ++c) {
    for (size_t p = 0; p < 10; ++p) {
      const int64_t count = eval["confusion"][c][p];
      rows += count;
      if (c == p) correct += count;
    }
    EXPECT_EQ(eval["classes"][c]["rows"], 10);
    EXPECT_EQ(eval["classes"][c]["recall"].get<double>(),
              eval["confusion"][c][c].get<double>() / 10);
  }
  EXPECT_EQ(rows, 100);
  EXPECT_EQ(static_cast<double>(correct) / 100, eval["accuracy"]);

  const CliResult text = Run(
      {"eval", "run/best.safetensors", "--data", "data", "--subset", "train"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("300 rows"), HasSubstr("precision  recall"),
                    HasSubstr("confusion")));
}

TEST_F(E2eTrainTest, PredictGivesEachRowItsLabelsAndProbabilities) {
  const json trained = Train({"--epochs", "3", "--out", "run"});
  const CliResult result =
      Run({"predict", "run", "data/t10k-images-idx3-ubyte", "--top", "3"});
  ASSERT_EQ(result.code, 0) << result.err;
  std::istringstream lines(result.out);
  int64_t row = 0, correct = 0;
  for (std::string line; std::getline(lines, line); ++row) {
    std::istringstream words(line);
    int64_t number = -1, label[3] = {};
    double p[3] = {};
    words >> number >> label[0] >> p[0] >> label[1] >> p[1] >> label[2] >> p[2];
    ASSERT_TRUE(words && words.eof()) << line;
    EXPECT_EQ(number, row);
    EXPECT_TRUE(p[0] >= p[1] && p[1] >= p[2] && p[2] >= 0) << line;
    EXPECT_LE(p[0] + p[1] + p[2], 1.00001) << line;
    EXPECT_EQ(std::count(line.begin(), line.end(), '\t'), 6);
    if (label[0] == row % 10) ++correct;
  }
  EXPECT_EQ(row, 100);
  EXPECT_EQ(static_cast<double>(correct) / 100, trained["test_accuracy"]);

  // Without IMAGES: the test images of the data.
  const CliResult of_data =
      Run({"predict", "run", "--data", "data", "--top=3"});
  EXPECT_EQ(of_data.out, result.out);
  const CliResult too_many =
      Run({"predict", "run", "--data", "data", "--top", "11"});
  EXPECT_EQ(too_many.code, 2);
  EXPECT_THAT(too_many.err, HasSubstr("--top: want at most the 10 classes"));
}

TEST_F(E2eTrainTest, SixtyThousandRowsInBatchesOf64Are938StepsWithATailOf32) {
  WriteData("large", 60000, 100, 2);
  const CliResult result = Run({"--data", "large", "--batch", "64", "--epochs",
                                "1", "--validation", "0"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("938 steps per epoch, the last of 32 rows"));
}

TEST_F(E2eTrainTest, ATailIsTheSameStepAsABatchOfItsSize) {
  // 240 rows: one whole batch, or the tail of a batch that is never filled.
  for (const char* dispatch : {"ops", "single"}) {
    for (const char* batch : {"240", "1000"}) {
      Train({"--epochs", "2", "--batch", batch, "--out",
             absl::StrCat(dispatch, batch), "--dispatch", dispatch, "--threads",
             "2", "--input", "dense"});
    }
    EXPECT_TRUE(Read(absl::StrCat(dispatch, "240/model.safetensors")) ==
                Read(absl::StrCat(dispatch, "1000/model.safetensors")));
  }
}

// The epochs' losses of two runs are equal but for rounding.
void ExpectSameLosses(const json& got, const json& want) {
  ASSERT_EQ(got["epochs"].size(), want["epochs"].size());
  for (size_t i = 0; i < want["epochs"].size(); ++i) {
    const double loss = want["epochs"][i]["loss"];
    EXPECT_NEAR(got["epochs"][i]["loss"], loss, 1e-3 * loss) << i;
  }
}

TEST_F(E2eTrainTest, OneDispatchTrainsAsTheChainDoes) {
  const std::vector<std::vector<std::string>> settings = {
      {},
      {"--batch", "1"},
      {"--batch", "240"},  // in tiles
      {"--model", "64-1-10"},
      {"--model", "64-3-17-10", "--activation", "gelu"},
      {"--model", "64-129-1000", "--activation", "tanh"},
      {"--model", "64-24-24-24-10", "--activation", "sigmoid"},
      {"--model", "64-10"},
      {"--loss", "mse", "--lr", "0.5"},
      {"--optimizer", "momentum", "--nesterov", "--lr", "0.02"},
      {"--optimizer", "adam", "--lr", "0.001"},
      {"--weight-decay", "0.001"},
  };
  for (std::vector<std::string> args : settings) {
    SCOPED_TRACE(testing::PrintToString(args));
    args.insert(args.end(), {"--epochs", "2", "--threads", "3"});
    const auto train = [&](const char* dispatch, const char* input) {
      std::vector<std::string> all = args;
      all.insert(all.end(), {"--dispatch", dispatch, "--input", input});
      return Train(all);
    };
    const json chain = train("ops", "dense");
    const json single = train("single", "dense");
    EXPECT_EQ(single["dispatch"], "single");
    EXPECT_THAT(single["lowering"].get<std::string>(),
                HasSubstr("team of 3 workers"));
    ExpectSameLosses(single, chain);
    ExpectSameLosses(train("single", "sparse"), chain);
    ExpectSameLosses(train("ops", "sparse"), chain);
  }
}

TEST_F(E2eTrainTest, TheTextbookStepCanBeOneDispatchToo) {
  const auto train = [this](const char* dispatch) {
    return Train({"--epochs", "2", "--threads", "2", "--fuse", "off", "--input",
                  "dense", "--dispatch", dispatch});
  };
  ExpectSameLosses(train("single"), train("ops"));
}

TEST_F(E2eTrainTest, OneDispatchRepeatsItsBits) {
  for (const char* input : {"dense", "sparse"}) {
    for (const char* out : {"a", "b"}) {  // with a tail: two teams
      Train({"--epochs", "3", "--dispatch", "single", "--threads", "2",
             "--batch", "32", "--input", input, "--out", out, "--force",
             "--affinity", "compact"});
    }
    EXPECT_TRUE(Read("a/model.safetensors") == Read("b/model.safetensors"));
  }
}

TEST_F(E2eTrainTest, AutoNamesTheFlagsThatRepeatTheRun) {
  const json automatic = Train({"--epochs", "2", "--out", "auto"});
  std::vector<std::string> flags = absl::StrSplit(
      automatic["auto"].get<std::string>(), ' ', absl::SkipEmpty());
  ASSERT_EQ(flags.size(), 6u);
  flags.insert(flags.end(), {"--epochs", "2", "--out", "given"});
  const json given = Train(flags);
  EXPECT_TRUE(given["auto"].is_null());
  EXPECT_EQ(given["lowering"], automatic["lowering"]);
  EXPECT_TRUE(Read("auto/model.safetensors") ==
              Read("given/model.safetensors"));
}

TEST_F(E2eTrainTest, EveryOptimizerLossAndActivationLearns) {
  const std::vector<std::vector<std::string>> settings = {
      {"--optimizer", "momentum", "--lr", "0.02"},
      {"--optimizer", "momentum", "--nesterov", "--lr", "0.02"},
      {"--optimizer", "adam", "--lr", "0.005"},
      {"--optimizer", "adamw", "--lr", "0.005", "--weight-decay", "0.01"},
      {"--weight-decay", "0.001"},
      {"--loss", "mse", "--lr", "0.5"},
      {"--activation", "tanh"},
      {"--activation", "sigmoid", "--lr", "0.5", "--init", "xavier"},
      {"--model", "64-32-32-10", "--activation", "gelu"},
      {"--model", "64-10"},
      {"--lr-schedule", "cosine", "--warmup", "10"},
      {"--lr-schedule", "step", "--kernels", "loops"},
      {"--kernels", "onednn", "--fuse", "off"},
      {"--disable-pass", "fuse-update,cse"},
  };
  for (std::vector<std::string> args : settings) {
    const std::string name = testing::PrintToString(args);
    args.insert(args.end(),
                {"--epochs", "12", "--batch", "16", "--threads", "1"});
    const json result = Train(args);
    EXPECT_THAT(result["test_accuracy"].get<double>(), Gt(0.8)) << name;
  }
}

TEST_F(E2eTrainTest, PatienceStopsARunThatNoLongerImproves) {
  const json result = Train({"--epochs", "200", "--patience", "3"});
  EXPECT_LT(result["epochs"].size(), 200u);
  EXPECT_GE(result["epochs"].size(), 4u);
}

TEST_F(E2eTrainTest, WithoutValidationThereIsNoValidationAccuracy) {
  const json result =
      Train({"--epochs", "1", "--validation", "0", "--out", "run"});
  EXPECT_TRUE(result["epochs"][0]["validation_accuracy"].is_null());
  EXPECT_EQ(Read("run/best.safetensors"), Read("run/model.safetensors"));
}

TEST_F(E2eTrainTest, DumpIrAndPrintPlanShowTheCompiler) {
  const CliResult result = Run({"--data", "data", "--epochs", "1", "--dump-ir",
                                "ir/deep", "--print-plan"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_FALSE(std::filesystem::is_empty(Path("ir/deep")));
  EXPECT_THAT(result.out, HasSubstr("bytes"));
}

}  // namespace
}  // namespace onestep
