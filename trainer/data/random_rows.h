// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_DATA_RANDOM_ROWS_H_
#define ONESTEP_TRAINER_DATA_RANDOM_ROWS_H_

#include <cstdint>

#include "trainer/data/dataset.h"

namespace onestep {

// Rows to time a train step with when what they show does not matter: a share
// `density` of the pixels, by default about as in MNIST, is from 1 to 255, the
// others are 0, and labels are drawn too. Equal arguments give equal bytes.
// REQUIRES: rows, features, classes > 0; density in [0, 1].
Dataset RandomRows(int64_t rows, int64_t features, int64_t classes,
                   uint64_t seed, double density = 0.2);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_DATA_RANDOM_ROWS_H_
