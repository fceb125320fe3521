// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TESTS_TRAINER_SEARCH_SAMPLE_OUTCOME_H_
#define ONESTEP_TESTS_TRAINER_SEARCH_SAMPLE_OUTCOME_H_

#include "trainer/search/search_outcome.h"

namespace onestep {

// 20 trials of `epochs` epochs: lr 0.001 to 10, hidden 64 and 128, two seeds.
// lr 10 diverges, before its first epoch or after; some were stopped, one
// broken off, the last not begun; one loss is finite and huge.
SearchOutcome SampleOutcome(int epochs = 5);

// One trial that diverged at step 7; nothing was measured.
SearchOutcome DivergedOutcome();

// As many trials, all of which finished so many epochs.
SearchOutcome LargeOutcome(int trials, int epochs);

}  // namespace onestep

#endif  // ONESTEP_TESTS_TRAINER_SEARCH_SAMPLE_OUTCOME_H_
