// SPDX-License-Identifier: Apache-2.0
#include "trainer/numbers.h"

#include <charconv>
#include <iterator>
#include <limits>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

template <typename T>
bool ParseWhole(absl::string_view text, T* value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end;
}

template <typename T>
absl::StatusOr<T> ParseWithin(absl::string_view text, const char* kind, T low,
                              T high) {
  T value = 0;
  // Written so that nan is refused.
  if (ParseWhole(text, &value) && value >= low && value <= high) return value;
  return absl::InvalidArgumentError(absl::StrCat(
      "want ", kind, " from ", low, " to ", high, ", got ", Quote(text)));
}

}  // namespace

absl::StatusOr<int64_t> ParseInteger(absl::string_view text, int64_t low,
                                     int64_t high) {
  return ParseWithin(text, "an integer", low, high);
}

absl::StatusOr<uint64_t> ParseUnsigned(absl::string_view text) {
  return ParseWithin(text, "an integer", uint64_t{0},
                     std::numeric_limits<uint64_t>::max());
}

absl::StatusOr<double> ParseNumber(absl::string_view text, double low,
                                   double high) {
  return ParseWithin(text, "a number", low, high);
}

absl::StatusOr<double> ParsePercent(absl::string_view text, double high) {
  absl::string_view number = text;
  if (!absl::ConsumeSuffix(&number, "%")) {
    return absl::InvalidArgumentError(
        absl::StrCat("want a share like 5%, got ", Quote(text)));
  }
  ASSIGN_OR_RETURN(const double percent, ParseNumber(number, 0, high));
  if (percent == 0) {
    return absl::InvalidArgumentError("want more than 0%, got 0%");
  }
  return percent / 100;
}

double AsWritten(float value) {
  char text[32];
  double wide = value;
  const auto [end, error] = std::to_chars(text, std::end(text), value);
  if (error == std::errc()) std::from_chars(text, end, wide);
  return wide;
}

std::string Quote(absl::string_view text) {
  constexpr size_t kLongest = 60;
  std::string shown = absl::Utf8SafeCEscape(text.substr(0, kLongest));
  return absl::StrCat("'", shown, text.size() > kLongest ? "...'" : "'");
}

}  // namespace onestep
