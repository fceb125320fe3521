// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cpu/openmp_forks.h"
#include "tests/status_matchers.h"
#include "trainer/data/random_rows.h"
#include "trainer/measure/step_session.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kBatch = 64;

// The file of `most` of 100 steps on two threads.
Json TraceOf(Dispatch dispatch, int64_t most = 100) {
  const Dataset data = RandomRows(40 * kBatch, 200, 10, /*seed=*/1);
  CompileOptions options;
  options.dispatch = dispatch;
  options.threads = 2;
  auto session =
      StepSession::Create({{200, 96, 10}}, {}, options, data, kBatch);
  EXPECT_OK(session);
  std::vector<StepTrace> traces;
  EXPECT_OK((*session)->RunTraced(100, traces));
  TraceFile file;
  file.AddCompile("compile", (*session)->compiled());
  file.AddSpan("epoch 1", traces[0].begin, traces[0].end);
  file.AddSteps((*session)->compiled(), traces, most);
  return Json::parse(file.ToJson().dump());
}

// What the trace event format demands of each event, and Perfetto of slices in
// one row: that they nest or follow each other.
void CheckSchema(const Json& trace) {
  ASSERT_TRUE(trace.is_object());
  ASSERT_TRUE(trace.at("traceEvents").is_array());
  std::map<int, std::vector<std::pair<double, double>>> rows;
  std::set<int> named;
  for (const Json& event : trace["traceEvents"]) {
    ASSERT_TRUE(event.at("name").is_string());
    ASSERT_FALSE(event["name"].get<std::string>().empty());
    ASSERT_TRUE(event.at("pid").is_number_integer());
    ASSERT_TRUE(event.at("tid").is_number_integer());
    const std::string phase = event.at("ph");
    if (phase == "M") {
      ASSERT_TRUE(event.at("args").at("name").is_string());
      if (event["name"] == "thread_name") named.insert(event["tid"].get<int>());
      continue;
    }
    ASSERT_EQ(phase, "X");
    ASSERT_TRUE(event.at("cat").is_string());
    ASSERT_TRUE(event.at("ts").is_number());
    ASSERT_TRUE(event.at("dur").is_number());
    ASSERT_GE(event["ts"].get<double>(), 0);
    ASSERT_GE(event["dur"].get<double>(), 0);
    const double begin = event["ts"];
    rows[event["tid"].get<int>()].emplace_back(
        begin, begin + event["dur"].get<double>());
  }
  for (auto& [row, slices] : rows) {
    EXPECT_EQ(named.count(row), 1) << "row " << row << " has no name";
    std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    constexpr double kRounding = 1e-6;
    std::vector<double> open;
    for (const auto& [begin, end] : slices) {
      while (!open.empty() && open.back() <= begin + kRounding) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(end, open.back() + kRounding);
      }
      open.push_back(end);
    }
  }
}

int Count(const Json& trace, int row, const std::string& category) {
  int count = 0;
  for (const Json& event : trace["traceEvents"]) {
    count += event["tid"] == row && event.value("cat", "") == category;
  }
  return count;
}

std::set<std::string> Rows(const Json& trace) {
  std::set<std::string> rows;
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") rows.insert(event["args"]["name"]);
  }
  return rows;
}

TEST(TraceFileTest, OfATeamHasARowPerWorkerWithAllItsSteps) {
  const Json trace = TraceOf(Dispatch::kSingle);
  CheckSchema(trace);
  EXPECT_THAT(Rows(trace),
              testing::ElementsAre("program", "worker 0", "worker 1"));
  for (const int row : {1, 2}) {
    EXPECT_EQ(Count(trace, row, "step"), 100);
    EXPECT_EQ(Count(trace, row, "call") % 100, 0);
    EXPECT_GE(Count(trace, row, "call"), 800);
  }
  EXPECT_GE(Count(trace, 0, "pass"), 10);  // the passes and the lowering
}

TEST(TraceFileTest, OfAChainHasForksAndJoinsWithinTheCalls) {
  const Json trace = TraceOf(Dispatch::kOps);
  CheckSchema(trace);
  EXPECT_THAT(Rows(trace), testing::ElementsAre("program", "worker 0"));
  EXPECT_EQ(Count(trace, 1, "step"), 100);
  if (!ForkRecorder::Available().ok()) return;
  // At each of two large matmuls, before and after the caller's part.
  EXPECT_EQ(Count(trace, 1, "threads") % 100, 0);
  EXPECT_GE(Count(trace, 1, "threads"), 400);
}

TEST(TraceFileTest, HasAsManyStepsAsAskedFor) {
  EXPECT_EQ(Count(TraceOf(Dispatch::kOps, 7), 1, "step"), 7);
  EXPECT_EQ(Count(TraceOf(Dispatch::kSingle, 63), 2, "step"), 63);
}

TEST(TraceFileTest, CannotBeWrittenIntoAFolderThatIsNotThere) {
  EXPECT_THAT(TraceFile().Write("/no/such/folder/trace.json"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       testing::HasSubstr("/no/such/folder/trace.json")));
}

}  // namespace
}  // namespace onestep
