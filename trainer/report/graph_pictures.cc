// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/graph_pictures.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"
#include "trainer/graphviz.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

// Whether all that `part` does is done by `fused`.
bool IsPartOf(const Node& part, const Node& fused) {
  return !part.origins.empty() &&
         std::all_of(part.origins.begin(), part.origins.end(), [&](int origin) {
           return std::find(fused.origins.begin(), fused.origins.end(),
                            origin) != fused.origins.end();
         });
}

bool IsOp(const Node& node) {
  return !node.def().Has(kLeaf) && node.kind != OpKind::kConstant;
}

struct Fusion {
  std::vector<DotGroup> before, after;
  Json groups = Json::array(), steps = Json::array();
};

Fusion FindFusion(const Graph& before, const Graph& after) {
  Fusion fusion;
  for (const auto& step : after.nodes()) {
    if (!IsOp(*step)) continue;
    std::vector<const Node*> parts;
    Json unfused = Json::array();
    int op = 0;
    for (const auto& node : before.nodes()) {
      if (!IsOp(*node)) continue;
      if (IsPartOf(*node, *step)) {
        parts.push_back(node.get());
        unfused.push_back(op);
      }
      ++op;
    }
    const std::string name = step->op();
    fusion.steps.push_back({{"op", name}, {"unfused", std::move(unfused)}});
    if (parts.size() < 2) continue;
    const std::string label =
        absl::StrCat(fusion.groups.size() + 1, ": ", name);
    fusion.before.push_back({label, std::move(parts)});
    fusion.after.push_back({label, {step.get()}});
    fusion.groups.push_back(
        {{"name", name},
         {"from", absl::StrJoin(fusion.before.back().nodes, " + ",
                                [](std::string* out, const Node* part) {
                                  out->append(part->op());
                                })}});
  }
  return fusion;
}

// The element itself, which can stand in a page.
std::string WithoutProlog(const std::string& svg) {
  return svg.substr(std::min(svg.find("<svg"), svg.size()));
}

}  // namespace

absl::StatusOr<Graph> UnfusedGraph(
    Graph textbook, const std::vector<std::string>& disabled_passes) {
  PipelineOptions options;
  options.fuse = false;
  options.disabled = disabled_passes;
  RETURN_IF_ERROR(RunPipeline(textbook, options).status());
  return textbook;
}

int64_t CountOps(const Graph& graph) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [](const auto& node) { return IsOp(*node); });
}

absl::StatusOr<Json> GraphPictures(
    Graph textbook, const Compiled& compiled,
    const std::vector<std::string>& disabled_passes, const std::string& dot) {
  ASSIGN_OR_RETURN(const Graph before,
                   UnfusedGraph(std::move(textbook), disabled_passes));
  const Graph& after = compiled.graph;
  Fusion fusion = FindFusion(before, after);
  Json json = {{"before", nullptr},
               {"after", nullptr},
               {"note", ""},
               {"unfused_ops", CountOps(before)},
               {"fused_steps", compiled.executable->steps().size()},
               {"groups", std::move(fusion.groups)},
               {"steps", std::move(fusion.steps)}};
  const auto before_svg = DotToSvg(PrintDot(before, fusion.before), dot);
  const auto after_svg = DotToSvg(PrintDot(after, fusion.after), dot);
  if (before_svg.ok() && after_svg.ok()) {
    json["before"] = WithoutProlog(*before_svg);
    json["after"] = WithoutProlog(*after_svg);
  } else {
    const absl::Status& why =
        before_svg.ok() ? after_svg.status() : before_svg.status();
    json["note"] = std::string(why.message());
  }
  return json;
}

}  // namespace onestep
