// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/compiler.h"
#include "runtime/base/status.h"
#include "trainer/commands/commands.h"
#include "trainer/graph_report.h"
#include "trainer/graphviz.h"
#include "trainer/model.h"
#include "trainer/output_dir.h"
#include "trainer/report/graph_pictures.h"
#include "trainer/word2vec/graph_flags.h"

namespace onestep {
namespace {

// MNIST's, as no data is read: rows, and the share of nonzeros that --input
// sparse is shown for.
constexpr int64_t kTableRows = 60000;
constexpr double kDensity = 0.19;

std::string Title(const Config& config) {
  if (config.window_model != WindowModel::kNone) {
    const WindowSpec window = WindowOf(config);
    return absl::StrCat("word2vec ", NameOf(config.window_model), ", ",
                        config.vocab, " words of ", config.word2vec.size, ", ",
                        window.contexts, " contexts, ", window.outputs,
                        " outputs");
  }
  const int64_t models = config.compile.vectorize.models;
  return absl::StrCat(models > 0 ? absl::StrCat(models, " models of ") : "",
                      config.model.ToString(), ", ",
                      NameOf(config.model.activation), ", ",
                      NameOf(config.model.loss), ", ",
                      NameOf(config.optimizer.kind), ", batch ", config.batch);
}

absl::StatusOr<Graph> BuildStep(const Config& config) {
  if (config.window_model != WindowModel::kNone) {
    return BuildWindowStep(WindowOf(config));
  }
  return BuildTrainStep(config.model, config.optimizer, kTableRows,
                        config.batch);
}

std::string Header(const Config& config) {
  return absl::StrCat("onestep: ", Title(config), ", fuse ",
                      NameOf(config.compile.fuse),
                      config.compile.device == Device::kGpu
                          ? absl::StrCat(", device gpu, math ",
                                         NameOf(config.compile.cuda.math))
                          : absl::StrCat(", threads ", config.compile.threads),
                      "\n\n");
}

}  // namespace

absl::Status RunGraph(const Config& config, Console& console) {
  CompileOptions options = config.compile;
  options.keep_text = true;
  if (config.input == InputMode::kSparse) {
    options.sparse.nonzeros = static_cast<int64_t>(
        kDensity * static_cast<double>(kTableRows * config.model.features()));
  }
  RETURN_IF_ERROR(CreateDumpDir(options.dump_dir));
  ASSIGN_OR_RETURN(Graph graph, BuildStep(config));
  const std::string before = PrintGraph(graph);
  ASSIGN_OR_RETURN(const Graph unfused,
                   UnfusedGraph(graph.Clone(), options.disabled_passes));
  options.cuda.plan_only = true;
  ASSIGN_OR_RETURN(const Compiled compiled, Compile(std::move(graph), options));
  RETURN_IF_ERROR(WriteCudaGraph(config.cuda_graph, compiled));
  if (config.graph_format == GraphFormat::kText) {
    console.Print(
        absl::StrCat(Header(config),
                     GraphReport(before, compiled, CountOps(unfused),
                                 config.compile.fuse ? "fused" : "not fused")));
    return absl::OkStatus();
  }
  const std::string dot = PrintDot(compiled.graph);
  if (config.graph_format == GraphFormat::kDot) {
    console.Print(dot);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string svg, DotToSvg(dot));
  console.Print(svg);
  return absl::OkStatus();
}

}  // namespace onestep
