// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/trace_file.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trainer/json_text.h"
#include "trainer/output_dir.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProcess = 1;

Json ArgsOf(const StepInfo& step) {
  Json args;
  args["phase"] = step.phase;
  args["shape"] = step.label;
  args["implementation"] = step.implementation;
  if (!step.fused_from.empty()) args["fused from"] = step.fused_from;
  args["flops"] = step.flops;
  args["bytes"] = step.bytes;
  return args;
}

double Us(int64_t ns) { return 1e-3 * static_cast<double>(ns); }

}  // namespace

void TraceFile::AddSpan(const std::string& name, int64_t begin_ns,
                        int64_t end_ns) {
  slices_.push_back({0, name, "program", begin_ns, end_ns, {}});
}

void TraceFile::AddCompile(const std::string& name, const Compiled& compiled) {
  AddSpan(name, compiled.begin_ns, compiled.end_ns);
  for (const PassRecord& pass : compiled.passes) {
    if (!pass.ran) continue;
    const int64_t end = pass.begin_ns + static_cast<int64_t>(pass.ms * 1e6);
    slices_.push_back({0,
                       pass.name,
                       "pass",
                       pass.begin_ns,
                       end,
                       {{"changed", pass.changed},
                        {"nodes before", pass.nodes_before},
                        {"nodes after", pass.nodes_after}}});
  }
  slices_.push_back({0,
                     "lower",
                     "pass",
                     compiled.lower_ns,
                     compiled.end_ns,
                     {{"lowering", compiled.executable->lowering()}}});
}

void TraceFile::AddSteps(const Compiled& compiled,
                         const std::vector<StepTrace>& traces, int64_t most,
                         const std::string& way) {
  const Executable& executable = *compiled.executable;
  for (int w = 0; w < executable.workers(); ++w) {
    if (w + 1 < std::ssize(rows_)) continue;
    rows_.push_back(compiled.cuda ? "stream" : absl::StrCat("worker ", w));
  }
  int64_t done = 0;
  for (const StepTrace& trace : traces) {
    const int64_t count = std::min(trace.steps, most - done);
    for (int w = 0; w < std::ssize(trace.workers); ++w) {
      AddCalls(executable.WorkerSteps(w), trace.workers[w], w + 1, done + 1,
               count, way);
    }
    done += count;
  }
}

void TraceFile::AddCalls(const std::vector<StepInfo>& steps,
                         const StepTrace::Worker& worker, int row,
                         int64_t first_step, int64_t count,
                         const std::string& way) {
  if (count == 0) return;
  for (int64_t s = 0; s < count; ++s) {
    slices_.push_back(
        {row,
         absl::StrCat("step ", first_step + s, way.empty() ? "" : ", ", way),
         "step",
         worker.at(s, 0),
         worker.at(s, worker.calls),
         {}});
    for (int64_t c = 0; c < worker.calls; ++c) {
      slices_.push_back({row, steps[c].op, "call", worker.at(s, c),
                         worker.at(s, c + 1), ArgsOf(steps[c])});
    }
  }
  for (int64_t i = 0; i < worker.forks_recorded; ++i) {
    const ForkStamps& fork = worker.forks[i];
    if (fork.end > worker.at(count - 1, worker.calls)) break;
    slices_.push_back(
        {row, "fork", "threads", fork.begin, fork.body_begin, {}});
    slices_.push_back({row, "join", "threads", fork.body_end, fork.end, {}});
  }
}

Json TraceFile::ToJson() const {
  int64_t origin = std::numeric_limits<int64_t>::max();
  for (const Slice& slice : slices_) origin = std::min(origin, slice.begin_ns);
  Json events = Json::array();
  const auto name = [&events](const char* what, int row,
                              const std::string& text) {
    events.push_back({{"name", what},
                      {"ph", "M"},
                      {"pid", kProcess},
                      {"tid", row},
                      {"args", {{"name", text}}}});
  };
  name("process_name", 0, "onestep");
  for (int row = 0; row < std::ssize(rows_); ++row) {
    name("thread_name", row, rows_[row]);
  }
  for (const Slice& slice : slices_) {
    Json event = {{"name", slice.name},
                  {"cat", slice.category},
                  {"ph", "X"},
                  {"pid", kProcess},
                  {"tid", slice.row},
                  {"ts", Us(slice.begin_ns - origin)},
                  {"dur", Us(slice.end_ns - slice.begin_ns)}};
    if (!slice.args.is_null()) event["args"] = slice.args;
    events.push_back(std::move(event));
  }
  return {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
}

absl::Status TraceFile::Write(const std::string& file) const {
  return WriteTextFile(file, JsonText(ToJson()));
}

}  // namespace onestep
