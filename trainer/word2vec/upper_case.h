// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_UPPER_CASE_H_
#define ONESTEP_TRAINER_WORD2VEC_UPPER_CASE_H_

#include <locale.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace onestep {

// Capital letters of UTF-8 text of any script, each for one letter, so that a
// sharp s stays; whatever the program's own locale is.
class UpperCase {
 public:
  // Unavailable: the system has no locale C.UTF-8.
  static absl::StatusOr<UpperCase> Create();

  UpperCase(UpperCase&& other) : locale_(other.locale_) { other.locale_ = {}; }
  UpperCase& operator=(UpperCase&&) = delete;
  ~UpperCase();

  // Text that is not UTF-8 comes back as it is.
  std::string operator()(std::string_view text) const;

 private:
  explicit UpperCase(locale_t locale) : locale_(locale) {}

  locale_t locale_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_UPPER_CASE_H_
