// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/report_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "trainer/report/page.h"

namespace onestep {
namespace {

std::string Fill(absl::string_view page, const nlohmann::ordered_json& report) {
  constexpr absl::string_view kMark = "{{report}}";
  const size_t at = page.find(kMark);
  // Only strings have a `<`, and none may end the script element it stands in.
  const std::string json = absl::StrReplaceAll(
      report.dump(-1, ' ', /*ensure_ascii=*/true,
                  nlohmann::ordered_json::error_handler_t::replace),
      {{"<", "\\u003c"}});
  return absl::StrCat(page.substr(0, at), json, page.substr(at + kMark.size()));
}

}  // namespace

std::string ReportPage(const nlohmann::ordered_json& report) {
  return Fill(kTrainPage, report);
}

std::string SearchReportPage(const nlohmann::ordered_json& report) {
  return Fill(kSearchPage, report);
}

}  // namespace onestep
