// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CLOCK_H_
#define ONESTEP_RUNTIME_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace onestep {

// Nanoseconds of the steady clock. A read takes some 20 ns on x86.
inline int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CLOCK_H_
