// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_REPORT_REPORT_PAGE_H_
#define ONESTEP_TRAINER_REPORT_REPORT_PAGE_H_

#include <string>

#include "nlohmann/json.hpp"

namespace onestep {

// One page of HTML that holds the report as JSON, what draws it and nothing
// from elsewhere; it can be opened from a file. What is not UTF-8 is replaced.
std::string ReportPage(const nlohmann::ordered_json& report);
// Likewise, of what SearchPage (search_report.h) puts together.
std::string SearchReportPage(const nlohmann::ordered_json& report);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_REPORT_REPORT_PAGE_H_
