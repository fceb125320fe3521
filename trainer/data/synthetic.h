// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_DATA_SYNTHETIC_H_
#define ONESTEP_TRAINER_DATA_SYNTHETIC_H_

#include <cstdint>

#include "trainer/data/dataset.h"

namespace onestep {

inline constexpr int64_t kSyntheticTrainRows = 12000;
inline constexpr int64_t kSyntheticTestRows = 2000;

// The built-in set, for a machine without data: 28 x 28 pictures of the ten
// digits, each moved, scaled, turned, slanted, stretched in ink, and soiled at
// random. Row i shows digit i mod 10. Equal arguments give equal bytes; the
// two subsets of a seed have no picture in common.
Dataset SyntheticDigits(Subset subset, uint64_t seed);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_DATA_SYNTHETIC_H_
