// SPDX-License-Identifier: Apache-2.0
// Numbers from the command line: the whole text or nothing, in the same way
// in every locale. No sign `+`, no spaces, no hexadecimal, no nan or inf.
#ifndef ONESTEP_TRAINER_NUMBERS_H_
#define ONESTEP_TRAINER_NUMBERS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace onestep {

// Decimal; "010" is 10. InvalidArgument: "want an integer from 1 to 8, got
// '0x10'".
absl::StatusOr<int64_t> ParseInteger(absl::string_view text, int64_t low,
                                     int64_t high);
absl::StatusOr<uint64_t> ParseUnsigned(absl::string_view text);

// Decimal, with an exponent or without. InvalidArgument: "want a number from
// 0 to 1, got '1e'".
absl::StatusOr<double> ParseNumber(absl::string_view text, double low,
                                   double high);

// A share as "5%", above 0: 0.05. InvalidArgument as above.
absl::StatusOr<double> ParsePercent(absl::string_view text, double high);

// The double that is printed as the float is: 0.9f as 0.9.
double AsWritten(float value);

// The text in a message: quoted, shortened, and all in one line.
std::string Quote(absl::string_view text);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_NUMBERS_H_
