// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_TRIAL_INPUT_H_
#define ONESTEP_TRAINER_SEARCH_TRIAL_INPUT_H_

#include "compiler/compiler.h"
#include "trainer/config.h"
#include "trainer/model.h"

namespace onestep {

// Whether a trial's first layer walks the nonzeros of rows of which the share
// `density` is not zero. Of `mode` kAuto a rule and no measurement: the sums of
// the two come in different orders, and a trial's bits are to depend on nothing
// but the trial. Nonzeros where they were the faster in most of the groupings
// on Zen 5 with AVX-512, 4 to 128 hidden units, batches of 8 and 32, 19 and 50
// % of the values not 0.
bool WalksNonzeros(InputMode mode, const ModelSpec& model, double density,
                   const CompileOptions& compile);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_TRIAL_INPUT_H_
