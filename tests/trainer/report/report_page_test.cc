// SPDX-License-Identifier: Apache-2.0
#include "trainer/report/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onestep {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

// What stands in the page in the report's place.
std::string ReportIn(const std::string& page) {
  const std::string begin = "id=\"report\">";
  const size_t at = page.find(begin) + begin.size();
  return page.substr(at, page.find("</script>", at) - at);
}

TEST(ReportPageTest, HoldsTheReportAsItIs) {
  const Json report = {{"title", "</script><!-- \u2028 \u2029 {{report}} ü"},
                       {"loss", 0.1}};
  const std::string text = ReportIn(ReportPage(report));
  EXPECT_EQ(Json::parse(text), report);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_THAT(text, Not(HasSubstr("\u2028")));
}

TEST(ReportPageTest, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(ReportIn(ReportPage({{"title", "a\xff"}})),
            R"({"title":"a\ufffd"})");
}

TEST(ReportPageTest, HasItsStyleAndScriptsAndNothingFromElsewhere) {
  const std::string page = ReportPage({});
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("function lineChart("));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  for (const char* outside : {"src=", "https:", "@import", "url(h"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
}

}  // namespace
}  // namespace onestep
