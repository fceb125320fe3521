// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/huge_pages.h"

#include <sys/mman.h>

namespace onestep {

void PreferHugePages(void* p, int64_t bytes) {
#if defined(MADV_HUGEPAGE)
  // Only huge pages that lie completely inside the range; the others also hold
  // memory of other owners.
  const auto begin =
      (reinterpret_cast<uintptr_t>(p) + kHugePage - 1) / kHugePage * kHugePage;
  const auto end =
      (reinterpret_cast<uintptr_t>(p) + bytes) / kHugePage * kHugePage;
  if (begin >= end) return;
  void* const first = reinterpret_cast<void*>(begin);
  if (madvise(first, end - begin, MADV_HUGEPAGE) != 0) return;
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers lack
  (void)madvise(first, end - begin, kCollapse);
#else
  (void)p, (void)bytes;
#endif
}

}  // namespace onestep
