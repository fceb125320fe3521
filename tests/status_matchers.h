// SPDX-License-Identifier: Apache-2.0
// GoogleTest matchers for absl::Status and StatusOr, which Debian 12's Abseil
// does not have yet:
//   EXPECT_OK(WriteCheckpoint(path, checkpoint));
//   ASSERT_OK_AND_ASSIGN(const Dataset data, LoadIdxDirectory(...));
//   EXPECT_THAT(ReadIdxLabels(path),
//               StatusIs(absl::StatusCode::kDataLoss, HasSubstr("CRC")));
#ifndef ONESTEP_TESTS_STATUS_MATCHERS_H_
#define ONESTEP_TESTS_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace onestep {

inline const absl::Status& AsStatus(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& AsStatus(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << "whose status is " << AsStatus(arg).ToString();
  return AsStatus(arg).ok();
}

// `message` is a string or a matcher of one.
MATCHER_P2(StatusIs, code, message,
           "has code " + absl::StatusCodeToString(code) +
               " and a message that " +
               testing::DescribeMatcher<std::string>(message)) {
  const absl::Status& status = AsStatus(arg);
  *result_listener << "whose status is " << status.ToString();
  return status.code() == code &&
         testing::Matches(message)(std::string(status.message()));
}

}  // namespace onestep

#define EXPECT_OK(expr) EXPECT_THAT(expr, ::onestep::IsOk())
#define ASSERT_OK(expr) ASSERT_THAT(expr, ::onestep::IsOk())

#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  ASSERT_OK_AND_ASSIGN_(ONESTEP_STATUS_OR_(__LINE__), lhs, expr)
#define ASSERT_OK_AND_ASSIGN_(tmp, lhs, expr) \
  auto tmp = (expr);                          \
  ASSERT_OK(tmp);                             \
  lhs = std::move(tmp).value()
#define ONESTEP_STATUS_OR_(line) ONESTEP_STATUS_OR_LINE_(line)
#define ONESTEP_STATUS_OR_LINE_(line) status_or_##line

#endif  // ONESTEP_TESTS_STATUS_MATCHERS_H_
