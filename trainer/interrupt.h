// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_INTERRUPT_H_
#define ONESTEP_TRAINER_INTERRUPT_H_

namespace onestep {

// From now on SIGINT and SIGTERM are noted instead of ending the process; a
// second signal of the same kind ends it at once.
void CatchSignals();

// The number of the signal that was noted, or 0.
int PendingSignal();

}  // namespace onestep

#endif  // ONESTEP_TRAINER_INTERRUPT_H_
