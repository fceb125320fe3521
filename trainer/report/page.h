// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_REPORT_PAGE_H_
#define ONESTEP_TRAINER_REPORT_PAGE_H_

namespace onestep {

// page.html with its style and scripts, made by embed_page.cmake; the mark
// {{report}} is where the report goes.
extern const char kTrainPage[];
extern const char kSearchPage[];

}  // namespace onestep

#endif  // ONESTEP_TRAINER_REPORT_PAGE_H_
