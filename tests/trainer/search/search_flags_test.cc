// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/status_matchers.h"
#include "trainer/flags.h"
#include "trainer/search/trial_config.h"

namespace onestep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

absl::StatusOr<CommandLine> Parse(const std::string& line) {
  return ParseCommandLine(
      absl::StrSplit("search " + line, ' ', absl::SkipEmpty()));
}

Config Parsed(const std::string& line) {
  const absl::StatusOr<CommandLine> parsed = Parse(line);
  EXPECT_OK(parsed) << line;
  return parsed.ok() ? parsed->config : Config();
}

TEST(SearchFlagsTest, EveryFlagArrives) {
  const Config config = Parsed(
      "--data d --hidden none,128-64 --activation tanh,gelu --loss mse --init "
      "xavier --seed 5 --seeds 3 --shuffle-seed 9 --optimizer momentum,adam "
      "--momentum 0.5,0.9 --nesterov --weight-decay lin:0..0.1 --batch 8,16 "
      "--lr log:1e-4..1 --lr-schedule cosine --warmup 7 --epochs 9 "
      "--validation "
      "0.1 --trials 20 --parallel 6 --group loop --metric accuracy "
      "--early-stop "
      "asha --asha-eta 2 --asha-min-epochs 3 --time-limit 1.5 --out o --resume "
      "--threads 3 --input dense --json");
  const SearchConfig& search = config.search;
  EXPECT_THAT(search.space.hidden,
              ElementsAre(IsEmpty(), ElementsAre(128, 64)));
  EXPECT_THAT(search.space.activation,
              ElementsAre(Activation::kTanh, Activation::kGelu));
  EXPECT_EQ(search.space.seeds, 3);
  EXPECT_THAT(search.space.optimizer,
              ElementsAre(OptimizerKind::kMomentum, OptimizerKind::kAdam));
  EXPECT_THAT(search.space.momentum.values, ElementsAre(0.5, 0.9));
  EXPECT_EQ(search.space.weight_decay.high, 0.1);
  EXPECT_THAT(search.space.batch, ElementsAre(8, 16));
  EXPECT_TRUE(search.space.lr.log);
  EXPECT_EQ(search.sample, Sample::kRandom);
  EXPECT_EQ(search.trials, 20);
  EXPECT_EQ(search.parallel, 6);
  EXPECT_EQ(search.group, Grouping::kLoop);
  EXPECT_EQ(search.metric, SearchMetric::kAccuracy);
  EXPECT_EQ(search.early_stop, EarlyStop::kAsha);
  EXPECT_EQ(search.asha_eta, 2);
  EXPECT_EQ(search.asha_min_epochs, 3);
  EXPECT_EQ(search.time_limit, 1.5);
  EXPECT_TRUE(search.resume);
  EXPECT_EQ(config.seed, 5u);
  EXPECT_EQ(config.shuffle_seed, 9u);
  EXPECT_EQ(config.model.loss, Loss::kMse);
  EXPECT_EQ(config.init, Init::kXavier);
  EXPECT_TRUE(config.optimizer.nesterov);
  EXPECT_EQ(config.lr_schedule, ScheduleKind::kCosine);
  EXPECT_EQ(config.epochs, 9);
  EXPECT_EQ(config.compile.threads, 3);
  EXPECT_TRUE(config.json);
}

TEST(SearchFlagsTest, RefusesWithFlagItemAndWhatWasWanted) {
  for (const auto& [line, part] :
       std::vector<std::pair<std::string, std::string>>{
           {"--lr 0.1,x", "--lr: want a number"},
           {"--hidden 64,x", "--hidden: want widths of the hidden layers"},
           {"--batch 8,0", "--batch: want an integer from 1"},
           {"--batch 8,8", "--batch: want each value once, got '8' again"},
           {"--optimizer sgd,adm",
            "--optimizer: want sgd|momentum|adam|adamw, "
            "got 'adm'; the nearest is adam"},
           {"--model 784-10", "unknown flag '--model' of search"},
           {"--sample random", "--sample random: want --trials N"},
           {"--momentum 0.5", "--momentum: want momentum among --optimizer"},
           {"--asha-eta 2", "--asha-eta: want --early-stop asha"},
           {"--early-stop asha --epochs 1", "want --epochs above"},
           {"--validation 0", "--validation: want above 0"},
           {"--resume", "--resume: want --out DIR"},
           {"--resume --out o --force", "--resume: want no --force"}}) {
    EXPECT_THAT(Parse(line),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(part), Not(HasSubstr("\n")))))
        << line;
  }
}

TEST(SearchFlagsTest, ATrialsCommandLineTrainsThatTrialAlone) {
  Config search = Parsed("--seed 3 --seeds 2 --optimizer momentum --epochs 2");
  Trial trial;
  trial.model.widths = {784, 64, 10};
  trial.optimizer.kind = OptimizerKind::kMomentum;
  trial.optimizer.momentum = 0.5f;
  trial.optimizer.weight_decay = 1e-3f;
  trial.lr = 0.02;
  trial.batch = 16;
  trial.seed = 4;
  const Config config = ConfigOfTrial(search, trial, 0.2);
  const std::string line = TrainCommandLine(config, "a b");
  EXPECT_EQ(line,
            "trainer train --data 'a b' --model 784-64-10 --optimizer momentum "
            "--momentum 0.5 --weight-decay 0.001 --lr 0.02 --batch 16 --epochs "
            "2 --seed 4 --shuffle-seed 3 --dispatch single --kernels loops "
            "--threads 1 --input sparse");
  std::vector<std::string> words = absl::StrSplit(line, ' ');
  words.erase(words.begin(), words.begin() + 5);  // up to the data
  ASSERT_OK_AND_ASSIGN(const CommandLine parsed, ParseCommandLine(words));
  Config back = parsed.config;
  back.data = config.data;
  EXPECT_EQ(ConfigToJson(back), ConfigToJson(config));
}

TEST(SearchFlagsTest, OnAGpuATrialTakesTheDispatchThatItsKindCanHave) {
  const Config search = Parsed("--device gpu --optimizer momentum");
  Trial trial;
  trial.model.widths = {784, 10};
  trial.optimizer.kind = OptimizerKind::kMomentum;
  const Config config = ConfigOfTrial(search, trial, 0.2);
  EXPECT_EQ(config.compile.kernels, Kernels::kLoops);
  EXPECT_EQ(config.compile.dispatch, Dispatch::kAuto);
  EXPECT_EQ(config.compile.cuda.tier, search.compile.cuda.tier);
  const std::string line = TrainCommandLine(config, "");
  EXPECT_THAT(line,
              AllOf(HasSubstr("--device gpu"), HasSubstr("--kernels loops"),
                    Not(HasSubstr("--dispatch"))));
  EXPECT_OK(ParseCommandLine(absl::StrSplit(line.substr(8), ' ')));
}

TEST(SearchFlagsTest, ZeroIsWhatTheHelpSaysItIs) {
  const SearchConfig search =
      Parsed("--trials 0 --parallel 0 --time-limit 0").search;
  EXPECT_EQ(search.sample, Sample::kGrid);
  EXPECT_EQ(search.trials, 0);
  EXPECT_EQ(search.parallel, 0);
  EXPECT_EQ(search.time_limit, 0);
}

TEST(SearchFlagsTest, TheShuffleSeedIsSaidWhereTrainWouldTakeAnother) {
  Trial trial;
  trial.model.widths = {784, 10};
  trial.seed = 2;
  const Config search = Parsed("--seeds 2");
  EXPECT_THAT(TrainCommandLine(ConfigOfTrial(search, trial, 0.2), ""),
              HasSubstr("--seed 2 --shuffle-seed 1 "));
}

}  // namespace
}  // namespace onestep
