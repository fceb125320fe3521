// SPDX-License-Identifier: Apache-2.0
#include "trainer/interrupt.h"

#include <csignal>

namespace onestep {
namespace {

volatile std::sig_atomic_t pending_signal = 0;

}  // namespace

void CatchSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) { pending_signal = signal; };
  // Writes that a signal interrupts go on.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int PendingSignal() { return pending_signal; }

}  // namespace onestep
