// SPDX-License-Identifier: Apache-2.0
#include "trainer/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <locale>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "runtime/cpu/cpu_info.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

absl::StatusOr<CommandLine> Parse(const std::string& line) {
  return ParseCommandLine(absl::StrSplit(line, ' ', absl::SkipEmpty()));
}

Config Parsed(const std::string& line) {
  const absl::StatusOr<CommandLine> parsed = Parse(line);
  EXPECT_OK(parsed) << line;
  return parsed.ok() ? parsed->config : Config();
}

void ExpectRefused(const std::vector<std::string>& args,
                   const std::vector<std::string>& parts) {
  const absl::StatusOr<CommandLine> parsed = ParseCommandLine(args);
  for (const std::string& part : parts) {
    EXPECT_THAT(parsed, StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr(part), Not(HasSubstr("\n")))))
        << testing::PrintToString(args);
  }
}

TEST(FlagsTest, TheBareCommandTrainsWithTheDocumentedDefaults) {
  const Config config = Parsed("");
  EXPECT_EQ(config.verb, Verb::kTrain);
  EXPECT_TRUE(config.model.widths.empty());
  EXPECT_EQ(config.model.activation, Activation::kRelu);
  EXPECT_EQ(config.model.loss, Loss::kSoftmaxXent);
  EXPECT_EQ(config.optimizer.kind, OptimizerKind::kSgd);
  EXPECT_EQ(config.lr, 0.1);
  EXPECT_EQ(config.batch, 32);
  EXPECT_EQ(config.epochs, 5);
  EXPECT_EQ(config.validation, 0.2);
  EXPECT_EQ(config.seed, 1u);
  EXPECT_TRUE(config.compile.fuse);
  EXPECT_EQ(config.compile.device, Device::kCpu);
  EXPECT_EQ(config.compile.threads, DefaultThreads());
}

TEST(FlagsTest, FuseAndDeviceWorkInAnyOrderAndWithEquals) {
  for (const char* line :
       {"--fuse off --device gpu", "--device gpu --fuse off",
        "--fuse=off --device=gpu", "train --device=gpu --fuse off",
        "--fuse off train --device gpu", "--device gpu --fuse=off train"}) {
    const Config config = Parsed(line);
    EXPECT_EQ(config.verb, Verb::kTrain) << line;
    EXPECT_FALSE(config.compile.fuse) << line;
    EXPECT_EQ(config.compile.device, Device::kGpu) << line;
  }
  EXPECT_TRUE(Parsed("--fuse on --device cpu").compile.fuse);
}

TEST(FlagsTest, EveryTrainFlagArrives) {
  const Config config = Parsed(
      "--data d --model 64-256-256-10 --activation gelu --loss mse --init "
      "xavier --batch 7 --epochs 3 --lr 1e-3 --lr-schedule cosine --warmup 9 "
      "--optimizer momentum --momentum 0.5 --nesterov --weight-decay 0.01 "
      "--seed 18446744073709551615 --shuffle-seed 7 --validation 0.1 "
      "--patience 2 --threads 3 "
      "--dispatch graph --kernels loops --disable-pass cse,dce --dump-ir i "
      "--print-plan --out o --force --json");
  EXPECT_EQ(config.data, "d");
  EXPECT_THAT(config.model.widths, ElementsAre(64, 256, 256, 10));
  EXPECT_EQ(config.model.activation, Activation::kGelu);
  EXPECT_EQ(config.model.loss, Loss::kMse);
  EXPECT_EQ(config.init, Init::kXavier);
  EXPECT_EQ(config.batch, 7);
  EXPECT_EQ(config.epochs, 3);
  EXPECT_EQ(config.lr, 1e-3);
  EXPECT_EQ(config.lr_schedule, ScheduleKind::kCosine);
  EXPECT_EQ(config.warmup, 9);
  EXPECT_EQ(config.optimizer.kind, OptimizerKind::kMomentum);
  EXPECT_EQ(config.optimizer.momentum, 0.5f);
  EXPECT_TRUE(config.optimizer.nesterov);
  EXPECT_EQ(config.optimizer.weight_decay, 0.01f);
  EXPECT_EQ(config.seed, 18446744073709551615u);
  EXPECT_EQ(config.shuffle_seed, 7u);
  EXPECT_EQ(config.validation, 0.1);
  EXPECT_EQ(config.patience, 2);
  EXPECT_EQ(config.compile.threads, 3);
  EXPECT_EQ(config.compile.dispatch, Dispatch::kGraph);
  EXPECT_EQ(config.compile.kernels, Kernels::kLoops);
  EXPECT_THAT(config.compile.disabled_passes, ElementsAre("cse", "dce"));
  EXPECT_EQ(config.compile.dump_dir, "i");
  EXPECT_TRUE(config.print_plan);
  EXPECT_EQ(config.out, "o");
  EXPECT_TRUE(config.force);
  EXPECT_TRUE(config.json);
}

TEST(FlagsTest, EvalAndPredictTakeTheirFilesAsWordsOrFlags) {
  EXPECT_EQ(Parsed("eval m").model_file, "m");
  EXPECT_EQ(Parsed("eval --model-file m").model_file, "m");
  EXPECT_EQ(Parsed("eval m --subset train").subset, Subset::kTrain);
  const Config words = Parsed("predict m i --top 3");
  EXPECT_EQ(words.model_file, "m");
  EXPECT_EQ(words.images, "i");
  EXPECT_EQ(words.top, 3);
  const Config mixed = Parsed("predict --model-file m i");
  EXPECT_EQ(mixed.model_file, "m");
  EXPECT_EQ(mixed.images, "i");
}

TEST(FlagsTest, EachVerbHasTheFlagsOfTheStepItBuilds) {
  const Config graph = Parsed("graph --model 4-2 --batch 3 --fuse off");
  EXPECT_EQ(graph.verb, Verb::kGraph);
  EXPECT_THAT(graph.model.widths, ElementsAre(4, 2));
  EXPECT_EQ(graph.batch, 3);
  EXPECT_FALSE(graph.compile.fuse);
  const Config bench = Parsed("bench --optimizer adam --json");
  EXPECT_EQ(bench.verb, Verb::kBench);
  EXPECT_EQ(bench.optimizer.kind, OptimizerKind::kAdam);
  EXPECT_TRUE(bench.json);
  EXPECT_TRUE(Parsed("info --json").json);
  const Config probe = Parsed("probe --json");
  EXPECT_EQ(probe.verb, Verb::kProbe);
  EXPECT_TRUE(probe.json);
}

TEST(FlagsTest, GraphAndBenchNeedNoDataAndShowTheReferenceModel) {
  const Config graph = Parsed("graph --format svg");
  EXPECT_EQ(graph.graph_format, GraphFormat::kSvg);
  EXPECT_THAT(graph.model.widths, ElementsAre(784, 128, 10));
  const Config bench = Parsed("bench");
  EXPECT_THAT(bench.model.widths, ElementsAre(784, 128, 10));
  EXPECT_THAT(bench.batches, ElementsAre(32, 128, 512, 2048, 4096));
}

TEST(FlagsTest, BenchTakesAListOfBatches) {
  const Config bench = Parsed("bench --batch 8,1 --samples 5");
  EXPECT_THAT(bench.batches, ElementsAre(8, 1));
  EXPECT_EQ(bench.samples, 5);
  EXPECT_THAT(ParseCommandLine({"bench", "--batch", "8,,1"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--batch: want an integer from 1 to")));
  EXPECT_THAT(ParseCommandLine({"bench", "--batch", "0"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--batch: want an integer from 1 to")));
}

TEST(FlagsTest, LeadingZerosAreDecimal) {
  EXPECT_EQ(Parsed("--batch 010").batch, 10);
}

TEST(FlagsTest, TheLastOfARepeatedFlagCounts) {
  EXPECT_EQ(Parsed("--seed 3 --seed 4").seed, 4u);
}

TEST(FlagsTest, RefusesWhatIsNotWhollyAnInteger) {
  for (const char* text : {"0x10", "1e2", "ten", " 5", "5 ", "+5", "-3", "0",
                           "", "1.0", "99999999999999999999", "nan"}) {
    ExpectRefused({"--batch", text},
                  {"--batch: want an integer from 1 to 1048576, got '" +
                   std::string(text) + "'"});
  }
  ExpectRefused({"--seed", "-1"}, {"--seed: want an integer from 0 to"});
  ExpectRefused({"--epochs=0"}, {"--epochs: want an integer from 1"});
  ExpectRefused({"--patience", "x"}, {"--patience: want an integer from 0"});
  ExpectRefused({"--warmup", "-1"}, {"--warmup: want an integer from 0"});
  ExpectRefused({"--threads", "0"},
                {"--threads: want auto or an integer from 1 to 1024, got '0'"});
  ExpectRefused({"predict", "m", "--top", "0"}, {"--top: want an integer"});
}

TEST(FlagsTest, RefusesWhatIsNotWhollyANumber) {
  for (const char* text : {"1e", "nan", "inf", "-0.1", "0", " 0.1", "0,1",
                           "0x1p3", "1e400", "", "1e39"}) {
    ExpectRefused({"--lr", text}, {"--lr: want a number from",
                                   "got '" + std::string(text) + "'"});
  }
  ExpectRefused({"--momentum", "1.5"}, {"--momentum: want a number from 0 to"});
  ExpectRefused({"--validation", "1"}, {"--validation: want a number from 0"});
  ExpectRefused({"--weight-decay", "-1"}, {"--weight-decay: want a number"});
}

TEST(FlagsTest, NumbersDoNotDependOnTheLocale) {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
  };
  const std::locale before =
      std::locale::global(std::locale(std::locale(), new Comma));
  EXPECT_EQ(Parsed("--lr 0.25").lr, 0.25);
  ExpectRefused({"--lr", "0,25"}, {"got '0,25'"});
  std::locale::global(before);
}

// They would be measured twice, and taken for more process starts.
TEST(FlagsTest, AListHasEachValueOnce) {
  ExpectRefused({"bench", "--batch", "8,16,8"},
                {"--batch: want each value once, got '8' again"});
  ExpectRefused({"sweep", "--batches", "32,32"}, {"--batches: ", "'32' again"});
  ExpectRefused({"sweep", "--devices", "cpu,cpu"}, {"'cpu' again"});
  ExpectRefused({"sweep", "--dispatch", "ops,ops"}, {"'ops' again"});
}

TEST(FlagsTest, AWrongWordNamesTheChoicesAndTheNearest) {
  ExpectRefused({"--optimizer", "adm"},
                {"--optimizer: want sgd|momentum|adam|adamw, got 'adm'",
                 "the nearest is adam"});
  ExpectRefused({"--fuse", "yes"}, {"--fuse: want on|off, got 'yes'"});
  ExpectRefused({"--device", "cuda"}, {"--device: want cpu|gpu", "nearest"});
  ExpectRefused({"--dispatch", "sigle"}, {"the nearest is single"});
  ExpectRefused({"--kernels", "onedn"}, {"the nearest is onednn"});
  ExpectRefused({"--activation", "rellu"}, {"the nearest is relu"});
  ExpectRefused({"--loss", "crossentropy"}, {"the nearest is cross-entropy"});
  ExpectRefused({"--init", "Xavier"}, {"the nearest is xavier"});
  ExpectRefused({"--lr-schedule", "cos"}, {"the nearest is"});
  ExpectRefused({"--disable-pass", "cse,fuse-gater"},
                {"--disable-pass", "'fuse-gater'", "nearest is fuse-gather"});
  ExpectRefused({"eval", "m", "--subset", "tests"}, {"the nearest is test"});
}

TEST(FlagsTest, RefusesAGpusFlagsWithoutAGpu) {
  for (const auto& [flag, value] :
       {std::pair{"--math", "tf32"}, std::pair{"--tier", "fused"},
        std::pair{"--first-layer", "split"},
        std::pair{"--steps-per-launch", "4"}, std::pair{"--device-data", "1"},
        std::pair{"--dump-cuda-graph", "x.dot"}}) {
    ExpectRefused({flag, value},
                  {std::string(flag) + ": want --device gpu with it, got cpu"});
    EXPECT_OK(ParseCommandLine({flag, value, "--device", "gpu"}).status());
  }
  ExpectRefused({"eval", "m", "--math", "bf16"}, {"--math: want --device gpu"});
  ExpectRefused(
      {"--device", "gpu", "--tier", "library", "--first-layer", "split"},
      {"--first-layer: want --tier fused or persistent with it, got "
       "library"});
}

TEST(FlagsTest, AnUnknownFlagNamesTheNearest) {
  ExpectRefused({"--fuze", "on"},
                {"unknown flag '--fuze' of train", "the nearest is --fuse"});
  ExpectRefused({"--lr-shedule=cosine"}, {"the nearest is --lr-schedule"});
  ExpectRefused({"-v"}, {"unknown flag '-v'"});
  ExpectRefused({"--top", "3"}, {"unknown flag '--top' of train"});
  ExpectRefused({"eval", "m", "--epochs", "3"},
                {"unknown flag '--epochs' of eval"});
}

TEST(FlagsTest, AnUnknownVerbNamesTheNearest) {
  ExpectRefused({"trian"}, {"unknown verb 'trian'", "the nearest is train"});
  ExpectRefused({"pred", "m"}, {"the nearest is predict"});
  ExpectRefused({"--fuse", "on", "evl"}, {"unknown verb 'evl'"});
  ExpectRefused({""}, {"unknown verb ''"});
}

TEST(FlagsTest, RefusesWordsAfterTheVerb) {
  ExpectRefused({"train", "now"}, {"want flags after train, got 'now'"});
  ExpectRefused({"eval", "m", "n"}, {"want at most 1 files here, got 'n'"});
  ExpectRefused({"eval"}, {"eval: want a MODEL file, got none"});
}

TEST(FlagsTest, RefusesAFlagWithoutItsValue) {
  ExpectRefused({"--fuse"}, {"--fuse"});
  ExpectRefused({"--fuse", "--device", "gpu"}, {"'gpu'"});
  ExpectRefused({"--out", ""}, {"--out: want DIR, got ''"});
}

TEST(FlagsTest, RefusesModelsThatAreNone) {
  for (const char* text : {"784", "784-0-10", "784--10", "-", "a-b", "784-10-",
                           "784x10", "99999999-10"}) {
    ExpectRefused({"--model", text}, {"--model: want two widths or more",
                                      "got '" + std::string(text) + "'"});
  }
}

TEST(FlagsTest, RefusesFlagsThatSayNothingTogether) {
  ExpectRefused({"--momentum", "0.5"},
                {"--momentum: want --optimizer momentum with it, got sgd"});
  ExpectRefused({"--nesterov", "--optimizer", "adam"},
                {"--nesterov: want --optimizer momentum with it, got adam"});
  ExpectRefused({"--patience", "2", "--validation", "0"},
                {"--patience: want --validation above 0"});
  ExpectRefused({"--force"}, {"--force: want --out DIR with it"});
}

TEST(FlagsTest, AStepOfWord2vecTakesItsSizesAndNoneOfANet) {
  const Config config = Parsed(
      "graph --word2vec cbow --vocab 1000 --size 200 --window 7 --negative 3");
  EXPECT_EQ(config.window_model, WindowModel::kCbow);
  EXPECT_EQ(config.vocab, 1000);
  EXPECT_EQ(config.word2vec.size, 200);
  EXPECT_EQ(config.word2vec.window, 7);
  EXPECT_EQ(config.word2vec.negative, 3);
  ExpectRefused({"graph", "--size", "50"},
                {"--size: want --word2vec with it, got none"});
  ExpectRefused({"graph", "--word2vec", "hs", "--batch", "8"},
                {"--batch: want no --word2vec with it, got hs"});
  ExpectRefused({"graph", "--word2vec", "hs", "--negative", "8"},
                {"--negative: want skipgram or cbow with it, got hs"});
}

TEST(FlagsTest, WhatIsMeasuredArrives) {
  const Config profile =
      Parsed("profile --steps 5000 --compare --trace t.json");
  EXPECT_EQ(profile.profile_steps, 5000);
  EXPECT_TRUE(profile.compare_fusion);
  EXPECT_EQ(profile.trace, "t.json");
  EXPECT_EQ(profile.trace_steps, 100);
  EXPECT_EQ(profile.input, InputMode::kDense);
  const Config sweep =
      Parsed("sweep --batches 8,16 --devices cpu,gpu --dispatch ops,graph");
  EXPECT_THAT(sweep.batches, ElementsAre(8, 16));
  EXPECT_THAT(sweep.devices, ElementsAre(Device::kCpu, Device::kGpu));
  EXPECT_THAT(sweep.dispatches, ElementsAre(Dispatch::kOps, Dispatch::kGraph));
  EXPECT_EQ(sweep.epochs, 1);
  const Config advise = Parsed("advise --rows 9 --density 0.5 --check");
  EXPECT_EQ(advise.rows, 9);
  EXPECT_EQ(advise.density, 0.5);
  EXPECT_TRUE(advise.check);
  const Config bench = Parsed("bench --processes 4 --compare o --gate 2.5%");
  EXPECT_EQ(bench.processes, 4);
  EXPECT_EQ(bench.compare_file, "o");
  EXPECT_EQ(bench.gate, 0.025);
  EXPECT_THAT(bench.arguments, ElementsAre("bench", "--processes", "4",
                                           "--compare", "o", "--gate", "2.5%"));
}

TEST(FlagsTest, AVerbIsNoValueOfAFlagThatNeedNotTakeOne) {
  EXPECT_TRUE(Parsed("--compare profile").compare_fusion);
  EXPECT_EQ(Parsed("--compare old.json bench").compare_file, "old.json");
}

TEST(FlagsTest, RefusesWhatWouldHaveNoEffect) {
  ExpectRefused({"profile", "--input", "auto"}, {"--input: want dense|sparse"});
  ExpectRefused({"graph", "--input", "auto"}, {"--input: want dense|sparse"});
  ExpectRefused({"sweep", "--dispatch", "ops,auto"},
                {"--dispatch: want ops|graph|single, got 'auto'"});
  ExpectRefused({"profile", "--compare", "--fuse", "off"}, {"--compare: "});
  for (const char* verb : {"profile", "graph"}) {
    ExpectRefused({verb, "--affinity", "0,99"},
                  {"--affinity: want --dispatch"});
    EXPECT_OK(ParseCommandLine(
        {verb, "--affinity", "compact", "--dispatch", "single"}));
  }
  ExpectRefused({"--affinity", "0", "--dispatch", "ops"}, {"--affinity: want"});
  ExpectRefused({"sweep", "--affinity", "0", "--dispatch", "ops"},
                {"--affinity: want"});
  ExpectRefused({"bench", "--gate", "5%"}, {"--gate: want --compare FILE"});
  ExpectRefused({"bench", "--compare", "a", "--gate", "5"}, {"like 5%"});
  ExpectRefused({"train", "--trace-steps", "5"}, {"--trace-steps: want"});
  ExpectRefused({"advise", "--device", "gpu"}, {"unknown flag '--device'"});
  ExpectRefused({"bench", "--dispatch", "ops"}, {"unknown flag '--dispatch'"});
}

TEST(FlagsTest, NoFileIsWrittenByTwoFlags) {
  ExpectRefused({"--report", "a/f", "--trace", "./a//f"},
                {"--report: want a file that --trace does not write, got "
                 "'a/f'"});
  ExpectRefused({"--trace", "f", "--device", "gpu", "--dump-cuda-graph", "f"},
                {"--trace: ", "--dump-cuda-graph"});
  ExpectRefused({"--trace", "d/log.jsonl", "--out", "d/"}, {"--out"});
  ExpectRefused({"--report", "d", "--out", "d"}, {"--out"});
  ExpectRefused({"--report", "d", "--dump-ir", "d"}, {"--dump-ir"});
  ExpectRefused({"word2vec", "text", "--cache", "d/graph.txt", "--out", "d"},
                {"--cache: ", "--out"});
  EXPECT_OK(ParseCommandLine(
      {"--report", "d/a", "--trace", "d/b", "--out", "d", "--dump-ir", "d"}));
}

TEST(FlagsTest, HelpShowsFlagsDefaultsAndExitCodes) {
  ASSERT_OK_AND_ASSIGN(const CommandLine line, Parse("--help"));
  for (const char* part :
       {"--fuse", "on|off", "--lr-schedule", "constant|cosine|step", "[0.1]",
        "Exit codes:", "diverged", "143", "predict"}) {
    EXPECT_THAT(line.text, HasSubstr(part));
  }
  ASSERT_OK_AND_ASSIGN(const CommandLine predict, Parse("predict --help"));
  EXPECT_THAT(predict.text, HasSubstr("--top"));
  EXPECT_THAT(predict.text, Not(HasSubstr("--epochs")));
}

TEST(FlagsTest, VersionShowsCompilerLibrariesAndIsa) {
  ASSERT_OK_AND_ASSIGN(const CommandLine line, Parse("--version"));
  for (const char* part :
       {"onestep ", "compiler ", "oneDNN ", "Abseil ", "CLI11 ", "ISA "}) {
    EXPECT_THAT(line.text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace onestep
