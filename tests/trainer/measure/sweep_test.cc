// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/status_matchers.h"
#include "trainer/measure/sweep_peers.h"

namespace onestep {
namespace {

using ::testing::HasSubstr;

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

class PeersTest : public ::testing::Test {
 protected:
  PeersTest() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    config_.model.widths = {784, 128, 10};
    config_.batches = {32, 64};
  }
  ~PeersTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const char* name, const std::string& text) {
    const std::filesystem::path file = folder_ / name;
    std::ofstream(file) << text;
    return file.string();
  }

  static constexpr char kJson[] =
      R"({"model": "784-128-10", "rows": 600, "threads": 2, "commit": "abc",
          "date": "2026-01-02", "results": [
       {"approach": "numpy", "label": "numpy", "batch": 32, "median": 0.5},
       {"approach": "numpy", "label": "numpy", "batch": 4096, "median": 0.1},
       {"approach": "chain", "label": "onestep chain", "batch": 32,
        "median": 0.2}]})";

  std::filesystem::path folder_;
  Config config_;
  std::string note_;
};

TEST_F(PeersTest, OtherLibrariesAtTheBatchesOfTheSweepAreRead) {
  config_.peers = Write("compare.json", kJson);
  const auto peers = PeersOf(config_, note_);
  ASSERT_OK(peers);
  ASSERT_EQ(peers->size(), 1);
  EXPECT_EQ((*peers)[0].approach, "numpy");
  EXPECT_EQ((*peers)[0].batch, 32);
  EXPECT_EQ((*peers)[0].seconds_per_epoch, 0.5);
  EXPECT_THAT(note_, HasSubstr("2 threads, 600 rows"));
}

TEST_F(PeersTest, AProgramIsRunWithTheFlagsOfTheSweep) {
  config_.peers = Write("compare", std::string("#!/bin/sh\n"
                                               "for last; do :; done\n"
                                               "echo \"$@\" >\"$0.args\"\n"
                                               "cat >\"$last/compare.json\" "
                                               "<<'END'\n") +
                                       kJson + "\nEND\n");
  std::filesystem::permissions(config_.peers,
                               std::filesystem::perms::owner_all);
  config_.data = "/data";
  config_.compile.threads = 3;
  const auto peers = PeersOf(config_, note_);
  ASSERT_OK(peers);
  EXPECT_EQ(peers->size(), 1);
  std::ifstream in(config_.peers + ".args");
  std::string args;
  std::getline(in, args);
  EXPECT_THAT(args, HasSubstr("--data /data --model 784-128-10 --threads 3 "
                              "--batches 32,64 --lr 0.1 --seed 1 --out "));
}

TEST_F(PeersTest, AProgramsFailureIsOurs) {
  config_.peers = Write("compare", "#!/bin/sh\necho no data >&2\nexit 3\n");
  std::filesystem::permissions(config_.peers,
                               std::filesystem::perms::owner_all);
  EXPECT_THAT(PeersOf(config_, note_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no data")));
}

TEST_F(PeersTest, AnotherModelIsRefused) {
  config_.peers = Write("compare.json", kJson);
  config_.model.widths = {784, 64, 10};
  EXPECT_THAT(PeersOf(config_, note_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want model 784-64-10")));
}

TEST_F(PeersTest, AFileThatIsNoComparisonIsRefused) {
  config_.peers = Write("other.json", "{}");
  EXPECT_THAT(PeersOf(config_, note_),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("want what bench/compare writes")));
  for (const std::string& none :
       {(folder_ / "none.json").string(), std::string(300, 'a')}) {
    config_.peers = none;
    EXPECT_THAT(PeersOf(config_, note_), StatusIs(absl::StatusCode::kNotFound,
                                                  HasSubstr("cannot read")));
  }
}

}  // namespace
}  // namespace onestep
