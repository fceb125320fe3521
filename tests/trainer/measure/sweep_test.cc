// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "kernels/probe.h"
#include "nlohmann/json.hpp"
#include "runtime/cpu/cpu_info.h"
#include "tests/status_matchers.h"
#include "trainer/measure/sweep_peers.h"

namespace onestep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

SweepCell Cell(const char* approach, Device device, int64_t batch,
               double seconds) {
  SweepCell cell;
  cell.approach = approach;
  cell.device = device;
  cell.batch = batch;
  cell.seconds_per_epoch = seconds;
  return cell;
}

SweepCell Cpu(int64_t batch, double seconds) {
  return Cell("cpu single", Device::kCpu, batch, seconds);
}
SweepCell Gpu(int64_t batch, double seconds) {
  return Cell("gpu graph", Device::kGpu, batch, seconds);
}

TEST(FindCrossoverTest, TheGpuWinsFromTheBatchOnFromWhichItAlwaysDoes) {
  const auto crossover = FindCrossover({Cpu(32, 3), Gpu(32, 2),  // and loses at
                                        Cpu(64, 2), Gpu(64, 4), Cpu(128, 2),
                                        Gpu(128, 1), Cpu(256, 2), Gpu(256, 1)});
  ASSERT_TRUE(crossover);
  EXPECT_EQ(crossover->batch, 128);
  EXPECT_EQ(crossover->cpu, "cpu single");
  EXPECT_EQ(crossover->gpu, "gpu graph");
}

TEST(FindCrossoverTest, TheBestOfEachDeviceCounts) {
  const auto crossover =
      FindCrossover({Cpu(32, 3), Cell("cpu ops", Device::kCpu, 32, 1),
                     Gpu(32, 2), Cell("gpu single", Device::kGpu, 32, 0.5)});
  ASSERT_TRUE(crossover);
  EXPECT_EQ(crossover->batch, 32);
  EXPECT_EQ(crossover->cpu, "cpu ops");
  EXPECT_EQ(crossover->gpu, "gpu single");
}

TEST(FindCrossoverTest, TheGpuMayNeverWin) {
  const auto crossover = FindCrossover({Cpu(32, 1), Gpu(32, 2)});
  ASSERT_TRUE(crossover);
  EXPECT_FALSE(crossover->batch);
}

TEST(FindCrossoverTest, WithoutAGpuThereIsNone) {
  SweepCell refused = Gpu(32, 0);
  refused.refused = "no driver";
  EXPECT_FALSE(FindCrossover({Cpu(32, 1), refused}));
  EXPECT_FALSE(FindCrossover({}));
}

TEST(SweepReportTest, JsonHasNullWhereNothingIsKnown) {
  Sweep sweep;
  sweep.cells = {Cpu(32, 0.5), Gpu(32, 0)};
  sweep.cells[0].mfu = 0.75;
  sweep.cells[1].refused = "no driver";
  sweep.crossover = Crossover{"cpu single", "gpu graph", std::nullopt};
  const auto json = ToJson(sweep);
  EXPECT_EQ(json["cells"][0]["mfu"], 0.75);
  EXPECT_TRUE(json["cells"][0]["validation_accuracy"].is_null());
  EXPECT_EQ(json["cells"][0]["seconds_per_epoch"], 0.5);
  EXPECT_TRUE(json["cells"][1]["seconds_per_epoch"].is_null());
  EXPECT_EQ(json["cells"][1]["refused"], "no driver");
  EXPECT_TRUE(json["crossover"][0]["batch"].is_null());
}

TEST(SweepReportTest, TextHasALinePerCellAndThePeersOfTheBatch) {
  Sweep sweep;
  sweep.cells = {Cpu(32, 0.5), Gpu(32, 0), Cpu(64, 0.25)};
  sweep.cells[1].refused = "no driver";
  sweep.peers = {{"jax-scan", 32, 0.0913}};
  const std::string text = ToText(sweep);
  EXPECT_THAT(text, HasSubstr("     32  cpu single"));
  EXPECT_THAT(text, HasSubstr("  no driver\n     32  jax-scan"));
  EXPECT_THAT(text, HasSubstr("0.0913\n     64  cpu single"));
}

TEST(SweepReportTest, AnEpochFarFromItsStepsIsSaid) {
  Sweep sweep;
  sweep.rows = 1000;
  sweep.cells = {Cpu(300, 6), Cpu(300, 6.1), Cpu(300, 2), Cpu(300, 1.9)};
  for (SweepCell& cell : sweep.cells) cell.us_per_step = 1e6;
  sweep.cells.push_back(Gpu(300, 0));
  sweep.cells[4].refused = "no driver";
  const std::string text = ToText(sweep);
  EXPECT_THAT(text, HasSubstr("check of the weights\nbatch 300, cpu single: an "
                              "epoch took as long as 6.1 steps and has 4: "));
  EXPECT_THAT(text, HasSubstr("beside them\nbatch 300, cpu single: an epoch "
                              "took as long as 1.9 steps and has 4: other "
                              "work on the machine\nMFU"));
}

TEST(SweepReportTest, AnInterruptedOneSaysSo) {
  Sweep sweep;
  sweep.cells = {Cpu(32, 0.5)};
  EXPECT_THAT(ToText(sweep), Not(HasSubstr("interrupted")));
  EXPECT_EQ(ToJson(sweep)["interrupted"], false);
  sweep.interrupted = true;
  EXPECT_THAT(ToText(sweep), HasSubstr("\ninterrupted: the rest was not"));
  EXPECT_EQ(ToJson(sweep)["interrupted"], true);
}

class PeersTest : public ::testing::Test {
 protected:
  PeersTest() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    config_.model.widths = {784, 128, 10};
    config_.batches = {32, 64};
    config_.compile.threads = 2;
  }
  ~PeersTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const char* name, const std::string& text) {
    const std::filesystem::path file = folder_ / name;
    std::ofstream(file) << text;
    return file.string();
  }

  absl::StatusOr<std::vector<SweepPeer>> Peers() {
    return PeersOf(config_, /*rows=*/600, note_);
  }
  // As it is once `change` was done to what bench/compare wrote.
  absl::StatusOr<std::vector<SweepPeer>> PeersOnce(
      const std::function<void(Json&)>& change) {
    Json json = json_;
    change(json);
    config_.peers = Write("compare.json", json.dump());
    return Peers();
  }

  Json json_ = {
      {"model", "784-128-10"},
      {"rows", 600},
      {"threads", 2},
      {"lr", 0.1},
      {"commit", "abc"},
      {"date", "2026-01-02"},
      {"machine", {{"cpu", {{"model", CpuModelName()}, {"isa", CpuIsa()}}}}},
      {"results", Json::parse(R"([
       {"approach": "numpy", "label": "numpy", "batch": 32, "median": 0.5},
       {"approach": "numpy", "label": "numpy", "batch": 4096, "median": 0.1},
       {"approach": "chain", "label": "onestep chain", "batch": 32,
        "median": 0.2}])")}};
  std::filesystem::path folder_;
  Config config_;
  std::string note_;
};

TEST_F(PeersTest, OtherLibrariesAtTheBatchesOfTheSweepAreRead) {
  const auto peers = PeersOnce([](Json&) {});
  ASSERT_OK(peers);
  ASSERT_EQ(peers->size(), 1);
  EXPECT_EQ((*peers)[0].approach, "numpy");
  EXPECT_EQ((*peers)[0].batch, 32);
  EXPECT_EQ((*peers)[0].seconds_per_epoch, 0.5);
  EXPECT_EQ(note_, "peers: of commit abc, 2026-01-02");
}

TEST_F(PeersTest, AProgramIsRunWithTheFlagsOfTheSweep) {
  config_.peers = Write("compare", std::string("#!/bin/sh\n"
                                               "for last; do :; done\n"
                                               "echo \"$@\" >\"$0.args\"\n"
                                               "cat >\"$last/compare.json\" "
                                               "<<'END'\n") +
                                       json_.dump() + "\nEND\n");
  std::filesystem::permissions(config_.peers,
                               std::filesystem::perms::owner_all);
  config_.data = "/data";
  config_.compile.threads = 3;
  config_.lr = 0.12345678;
  const auto peers = Peers();
  ASSERT_OK(peers);
  EXPECT_EQ(peers->size(), 1);
  std::ifstream in(config_.peers + ".args");
  std::string args;
  std::getline(in, args);
  EXPECT_THAT(args,
              HasSubstr("--data /data --model 784-128-10 --threads 3 "
                        "--batches 32,64 --lr 0.12345678 --seed 1 --out "));
}

TEST_F(PeersTest, AProgramsFailureIsOurs) {
  config_.peers = Write("compare", "#!/bin/sh\necho no data >&2\nexit 3\n");
  std::filesystem::permissions(config_.peers,
                               std::filesystem::perms::owner_all);
  EXPECT_THAT(Peers(),
              StatusIs(absl::StatusCode::kNotFound, "--peers: no data"));
}

TEST_F(PeersTest, SecondsOfOtherWorkOrAnotherMachineAreRefused) {
  const auto refuses = [this](const std::function<void(Json&)>& change,
                              const char* message) {
    EXPECT_THAT(PeersOnce(change), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr(message)));
  };
  refuses([](Json& json) { json["model"] = "784-64-10"; },
          R"(want model "784-128-10", got "784-64-10")");
  refuses([](Json& json) { json["rows"] = 500; }, "want rows 600, got 500");
  refuses([](Json& json) { json["machine"]["cpu"]["model"] = "Abacus 9"; },
          R"(, got "Abacus 9")");
  refuses([](Json& json) { json["machine"]["cpu"]["isa"] = "beads"; },
          R"(, got "beads")");
  refuses([](Json& json) { json["results"].erase(0); },
          "want other libraries at one of --batches 32,64, got none");
}

// Files recorded by earlier versions have Highway's name for AVX-512.
TEST_F(PeersTest, AnIsaRecordedAsAvx3IsAvx512) {
  const auto peers =
      PeersOnce([](Json& json) { json["machine"]["cpu"]["isa"] = "avx3"; });
  if (HasAvx512()) {
    EXPECT_OK(peers);
  } else {
    EXPECT_THAT(peers, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr(R"(, got "AVX-512")")));
  }
}

TEST_F(PeersTest, WhatElseDiffersIsNoted) {
  config_.optimizer.kind = OptimizerKind::kAdam;
  config_.optimizer.weight_decay = 0.01f;
  config_.model.loss = Loss::kMse;
  config_.model.activation = Activation::kTanh;
  EXPECT_OK(PeersOnce([](Json& json) {
    json["threads"] = 1;
    json["lr"] = 0.5;
  }));
  EXPECT_THAT(note_,
              HasSubstr("; they differ in threads 1 (here 2), lr 0.5 (here "
                        "0.1), optimizer \"sgd\" (here \"adam\"), "
                        "weight_decay 0 (here 0.01), loss \"cross-entropy\" "
                        "(here \"mse\"), activation \"relu\" (here "
                        "\"tanh\")"));
}

TEST_F(PeersTest, AMedianThatIsNoTimeIsRefusedByName) {
  for (const Json& median : {Json(-1.0), Json(0), Json("0.5"), Json()}) {
    EXPECT_THAT(
        PeersOnce([&](Json& json) { json["results"][1]["median"] = median; }),
        StatusIs(absl::StatusCode::kDataLoss,
                 HasSubstr("want a median above 0 of numpy at batch "
                           "4096, got " +
                           median.dump())));
  }
}

TEST_F(PeersTest, AFileThatIsNoComparisonIsRefused) {
  config_.peers = Write("other.json", "{}");
  EXPECT_THAT(Peers(), StatusIs(absl::StatusCode::kDataLoss,
                                HasSubstr("want what bench/compare writes")));
  for (const std::string& none :
       {(folder_ / "none.json").string(), std::string(300, 'a')}) {
    config_.peers = none;
    EXPECT_THAT(Peers(), StatusIs(absl::StatusCode::kNotFound,
                                  HasSubstr("cannot read")));
  }
}

}  // namespace
}  // namespace onestep
