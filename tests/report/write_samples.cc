// SPDX-License-Identifier: Apache-2.0
// write_samples SAMPLE.json FOLDER: pages for report_test.py to look at.
//   full.html     the sample with the pictures of its graph
//   minimal.html  what a short run without validation, test, sweep and
//                 Graphviz leaves, and text that HTML must not take as its own
//   search-full.html      a search whose trials ended in every way there is
//   search-diverged.html   a search of one trial, which diverged
//   search-large.html      more trials and epochs than a page has room for
#include <cstdio>
#include <fstream>

#include "runtime/base/status.h"
#include "tests/trainer/search/sample_outcome.h"
#include "trainer/model.h"
#include "trainer/output_dir.h"
#include "trainer/report/graph_pictures.h"
#include "trainer/report/report_page.h"
#include "trainer/search/search_report.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<Json> Pictures(const std::string& dot) {
  ModelSpec model;
  model.widths = {784, 128, 10};
  ASSIGN_OR_RETURN(Graph graph, BuildTrainStep(model, {}, 60000, 32));
  ASSIGN_OR_RETURN(const Compiled compiled, Compile(graph.Clone(), {}));
  return GraphPictures(std::move(graph), compiled, {}, dot);
}

void Minimise(Json& report) {
  report["title"] = "</script><!-- <script> \u2028 \"quoted\" & <b>";
  report["epochs"] = {report["epochs"][0]};
  report["epochs"][0]["loss"] = nullptr;  // as a loss that is no number
  report["epochs"][0]["validation_loss"] = nullptr;
  report["epochs"][0]["validation_accuracy"] = nullptr;
  report["ended"] = "diverged: the loss is nan at epoch 2, step 7";
  report["test"] = report["sweep"] = nullptr;
  report["profiles"].erase(2);
}

absl::Status WriteSearches(const std::string& folder) {
  const Json config = {{"command", "trainer search --lr 0.001,0.01,0.1,1,10"},
                       {"validation", 0.2}};
  RETURN_IF_ERROR(WriteTextFile(folder + "/search-full.html",
                                SearchPage(SampleOutcome(), config)));
  RETURN_IF_ERROR(WriteTextFile(
      folder + "/search-diverged.html",
      SearchPage(DivergedOutcome(), {{"data", "</script> & <b>"}})));
  return WriteTextFile(folder + "/search-large.html",
                       SearchPage(LargeOutcome(600, 20), config));
}

absl::Status WriteSamples(const char* sample, const std::string& folder) {
  Json report = Json::parse(std::ifstream(sample));
  ASSIGN_OR_RETURN(report["graph"], Pictures("dot"));
  RETURN_IF_ERROR(WriteTextFile(folder + "/full.html", ReportPage(report)));
  ASSIGN_OR_RETURN(report["graph"], Pictures("no-such-dot"));
  Minimise(report);
  RETURN_IF_ERROR(WriteTextFile(folder + "/minimal.html", ReportPage(report)));
  return WriteSearches(folder);
}

}  // namespace
}  // namespace onestep

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SAMPLE.json FOLDER\n", argv[0]);
    return 2;
  }
  const absl::Status status = onestep::WriteSamples(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
