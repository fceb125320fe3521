// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/barrier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace onestep {

// Not std::atomic's wait: libstdc++'s calls sched_yield first, which hands a
// shared core to the other program for a whole slice. With no spins before it
// 16 us of work took 2400 beside two busy programs, 85 with this.
void Barrier::Sleep(uint32_t before) {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (true) {
    const uint32_t now = word_.load(std::memory_order_seq_cst);
    if ((now ^ before) & kFlip) break;
    // Returns at once when the word is no longer `now`.
    syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, now, nullptr, nullptr, 0);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Barrier::WakeAll() {
  syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace onestep
