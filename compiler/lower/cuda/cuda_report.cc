// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_report.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/kernel_resources.h"
#include "runtime/cuda/cuda_graph.h"

namespace onestep {
namespace {

std::string ToString(const Dim& dim) {
  std::string text = absl::StrCat(dim.x);
  if (dim.y > 1 || dim.z > 1) absl::StrAppend(&text, "x", dim.y);
  if (dim.z > 1) absl::StrAppend(&text, "x", dim.z);
  return text;
}

std::string Registers(const Launch& launch) {
  const KernelResources* const resources = FindKernelResources(launch.name);
  return resources == nullptr ? "?" : absl::StrCat(resources->registers);
}

std::string Kernel(const CudaNode& node) {
  return node.library ? absl::StrCat("cublasLt ", node.matmul.ToString())
                      : std::string(node.launch.name);
}

std::string After(absl::Span<const CudaNode> nodes,
                  const std::vector<int>& dependencies, int i) {
  if (dependencies.empty()) return "-";
  const char* const overlaps =
      IsProgrammatic(nodes, dependencies, i) ? "~" : "";
  return absl::StrJoin(dependencies, ",", [&](std::string* out, int d) {
    absl::StrAppend(out, overlaps, d + 1);
  });
}

// The columns after the number and the label.
std::vector<std::string> Columns(absl::Span<const CudaNode> nodes,
                                 const std::vector<int>& dependencies, int i) {
  const CudaNode& node = nodes[i];
  const std::string after = After(nodes, dependencies, i);
  if (node.library) return {Kernel(node), "?", "?", "?", "?", "?", after};
  const Launch& launch = node.launch;
  return {Kernel(node),
          ToString(launch.grid),
          ToString(launch.block),
          absl::StrCat(launch.cluster),
          absl::StrCat(launch.shared_bytes),
          Registers(launch),
          after};
}

}  // namespace

std::string CudaNodesText(absl::Span<const CudaNode> nodes) {
  const std::vector<std::vector<int>> dependencies = DependenciesOf(nodes);
  std::vector<std::vector<std::string>> rows = {{"#", "node", "kernel", "grid",
                                                 "block", "cluster", "shared",
                                                 "registers", "after"}};
  bool library = false;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {absl::StrCat(i + 1), nodes[i].label};
    const auto columns = Columns(nodes, dependencies[i], i);
    row.insert(row.end(), columns.begin(), columns.end());
    library |= nodes[i].library;
  }
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], row[c].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t c = 0; c + 1 < row.size(); ++c) {
      absl::StrAppend(&text, row[c],
                      std::string(widths[c] + 2 - row[c].size(), ' '));
    }
    absl::StrAppend(&text, row.back(), "\n");
  }
  if (library) {
    absl::StrAppend(&text,
                    "?: of the library's choice, known on a device only\n");
  }
  return text;
}

std::string CudaNodesDot(absl::Span<const CudaNode> nodes) {
  const std::vector<std::vector<int>> dependencies = DependenciesOf(nodes);
  std::string text =
      "digraph step {\n  node [shape=box, fontname=\"monospace\"];\n";
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    const CudaNode& node = nodes[i];
    absl::StrAppend(&text, "  n", i, " [label=\"", i + 1, " ", node.label,
                    "\\n", Kernel(node));
    if (!node.library) {
      absl::StrAppend(&text, "\\ngrid ", ToString(node.launch.grid), " block ",
                      ToString(node.launch.block), ", ",
                      node.launch.shared_bytes, " bytes shared, ",
                      Registers(node.launch), " registers");
    }
    absl::StrAppend(&text, "\"];\n");
    const bool overlaps = IsProgrammatic(nodes, dependencies[i], i);
    for (const int d : dependencies[i]) {
      absl::StrAppend(&text, "  n", d, " -> n", i,
                      overlaps ? " [style=dashed]" : "", ";\n");
    }
  }
  return absl::StrCat(text, "}\n");
}

}  // namespace onestep
