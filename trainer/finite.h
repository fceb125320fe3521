// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_FINITE_H_
#define ONESTEP_TRAINER_FINITE_H_

#include <bit>
#include <cstdint>

namespace onestep {

// False when an element of values[n] is infinite or not a number.
inline bool AllFinite(const float* values, int64_t n) {
  constexpr uint32_t kExponent = 0x7f800000;
  bool finite = true;  // no early return, so that the loop is vectorised
  for (int64_t i = 0; i < n; ++i) {
    finite &= (std::bit_cast<uint32_t>(values[i]) & kExponent) != kExponent;
  }
  return finite;
}

}  // namespace onestep

#endif  // ONESTEP_TRAINER_FINITE_H_
