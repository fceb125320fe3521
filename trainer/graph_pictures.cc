// SPDX-License-Identifier: Apache-2.0
#include "trainer/graph_pictures.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/status.h"
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

struct Groups {
  std::vector<DotGroup> before, after;
  Json json = Json::array();
};

Groups FindGroups(const Graph& before, const Graph& after) {
  Groups groups;
  for (const auto& fused : after.nodes()) {
    std::vector<const Node*> parts;
    for (const auto& node : before.nodes()) {
      if (IsPartOf(*node, *fused)) parts.push_back(node.get());
    }
    if (parts.size() < 2) continue;
    const std::string label =
        absl::StrCat(groups.json.size() + 1, ": ", fused->def().name);
    groups.before.push_back({label, std::move(parts)});
    groups.after.push_back({label, {fused.get()}});
    groups.json.push_back({{"name", fused->def().name},
                           {"from", absl::StrJoin(fused->fused_from, " + ")}});
  }
  return groups;
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
  return std::count_if(
      graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
        return !node->def().Has(kLeaf) && node->kind != OpKind::kConstant;
      });
}

absl::StatusOr<Json> GraphPictures(
    Graph textbook, const Compiled& compiled,
    const std::vector<std::string>& disabled_passes, const std::string& dot) {
  ASSIGN_OR_RETURN(const Graph before,
                   UnfusedGraph(std::move(textbook), disabled_passes));
  const Graph& after = compiled.graph;
  const Groups groups = FindGroups(before, after);
  Json json = {{"before", nullptr},
               {"after", nullptr},
               {"note", ""},
               {"unfused_ops", CountOps(before)},
               {"fused_steps", compiled.executable->steps().size()},
               {"groups", groups.json}};
  const auto before_svg = DotToSvg(PrintDot(before, groups.before), dot);
  const auto after_svg = DotToSvg(PrintDot(after, groups.after), dot);
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
