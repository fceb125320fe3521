// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_BASE_HUGE_PAGES_H_
#define ONESTEP_RUNTIME_BASE_HUGE_PAGES_H_

#include <cstdint>

namespace onestep {

inline constexpr int64_t kHugePage = int64_t{2} << 20;

// Asks Linux to back [p, p + bytes) by pages of 2 MiB. Linux 6.1 and later also
// replaces small pages that are already allocated. Reading rows in random order
// from a table on small pages costs a TLB miss per row: 32 rows of MNIST take
// 3.5 us instead of 2.1 us on Zen 5. The call is only a hint; failure is
// ignored and has no other effect.
void PreferHugePages(void* p, int64_t bytes);

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_BASE_HUGE_PAGES_H_
