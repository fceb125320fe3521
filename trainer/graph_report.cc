// SPDX-License-Identifier: Apache-2.0
#include "trainer/graph_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "runtime/base/status.h"
#include "runtime/cuda/cuda_program.h"
#include "trainer/output_dir.h"

namespace onestep {
namespace {

std::string PassText(const PassRecord& pass) {
  if (!pass.ran) return absl::StrFormat("pass %-20s  not run\n", pass.name);
  std::string text =
      absl::StrFormat("pass %-20s  %6.2f ms  %2d -> %2d nodes  %s\n", pass.name,
                      pass.ms, pass.nodes_before, pass.nodes_after,
                      pass.changed ? "changed" : "not changed");
  for (const std::string& refusal : pass.refusals) {
    absl::StrAppend(&text, "  refused: ", refusal, "\n");
  }
  if (pass.changed) absl::StrAppend(&text, pass.after);
  return text;
}

// Where every value is, and the program of a worker.
std::string TeamText(const Compiled& compiled) {
  if (!compiled.team) return "";
  const TeamReport& team = *compiled.team;
  return absl::StrCat(
      "\nplacement over ", team.partition.workers,
      team.partition.workers == 1 ? " worker: " : " workers: ", team.exchanges,
      team.exchanges == 1 ? " exchange" : " exchanges", " per step\n",
      team.partition.ToString(), "\nprogram of worker 0\n",
      PrintGraph(team.worker));
}

// The launch's nodes, and what else was tried.
std::string CudaText(const Compiled& compiled) {
  if (!compiled.cuda) return "";
  const CudaReport& cuda = *compiled.cuda;
  std::string text = absl::StrCat("\nnodes of a launch, tier ",
                                  ToString(cuda.tier), ", ", cuda.device, "\n");
  for (const std::string& note : cuda.notes) {
    absl::StrAppend(&text, "  refused: ", note, "\n");
  }
  return absl::StrCat(text, cuda.nodes);
}

}  // namespace

absl::Status WriteCudaGraph(const std::string& file, const Compiled& compiled) {
  if (file.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(WriteTextFile(file, compiled.cuda->nodes_dot));
  CudaProgram& program = *compiled.cuda->program;
  if (!program.has_device() || !program.has_graph()) return absl::OkStatus();
  return program.WriteDot(file + ".cuda");
}

std::string PassesText(const std::vector<PassRecord>& passes) {
  std::string text;
  for (const PassRecord& pass : passes) {
    absl::StrAppend(&text, PassText(pass));
  }
  return text;
}

std::string StepsText(const std::vector<StepInfo>& steps) {
  size_t op_width = 2, implementation_width = 14;
  for (const StepInfo& step : steps) {
    op_width = std::max(op_width, step.op.size());
    implementation_width =
        std::max(implementation_width, step.implementation.size());
  }
  const auto line = [&](absl::string_view number, absl::string_view phase,
                        absl::string_view op, absl::string_view implementation,
                        absl::string_view in_place) {
    return absl::StrFormat("%2s  %-8s  %-*s  %-*s  %s\n", number, phase,
                           op_width, op, implementation_width, implementation,
                           in_place);
  };
  std::string text = line("#", "phase", "op", "implementation", "in place");
  int number = 0;
  for (const StepInfo& step : steps) {
    absl::StrAppend(&text,
                    line(absl::StrCat(++number), step.phase, step.op,
                         step.implementation, step.in_place ? "yes" : "no"));
    absl::string_view shapes = step.label;
    if (absl::ConsumePrefix(&shapes, step.op)) {
      shapes = absl::StripLeadingAsciiWhitespace(shapes);
    }
    absl::StrAppend(&text, "    ", shapes, "\n");
    if (!step.fused_from.empty()) {
      absl::StrAppend(&text, "    from ", step.fused_from, "\n");
    }
  }
  return text;
}

std::string GraphReport(const std::string& before, const Compiled& compiled,
                        int64_t unfused_ops, absl::string_view title) {
  const Executable& executable = *compiled.executable;
  return absl::StrCat(
      "graph before the passes\n", before, "\n", PassesText(compiled.passes),
      TeamText(compiled), "\nmemory plan\n", executable.plan(),
      "\nsteps: ", executable.lowering(), "\n", StepsText(executable.steps()),
      CudaText(compiled), "\nunfused: ", unfused_ops, " ops -> ", title, ": ",
      executable.steps().size(),
      executable.steps().size() == 1 ? " step\n" : " steps\n");
}

std::string GraphText(const Compiled& compiled) {
  std::string text = PrintGraph(compiled.graph, {.fused_from = true});
  absl::StrAppend(&text, "\n# ", compiled.executable->lowering(), "\n");
  int index = 1;
  for (const StepInfo& step : compiled.executable->steps()) {
    absl::StrAppendFormat(&text, "# step %d  %-8s  %s  [%s]\n", index++,
                          step.phase, step.label, step.implementation);
  }
  text.pop_back();
  return text;
}

}  // namespace onestep
