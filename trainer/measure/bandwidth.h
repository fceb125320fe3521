// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_BANDWIDTH_H_
#define ONESTEP_TRAINER_MEASURE_BANDWIDTH_H_

#include <cstdint>

namespace onestep {

// GB/s, read and written counted both, of `threads` threads, or of as many as
// there are CPUs, that each copy one half of their share of `bytes` to the
// other, again and again: what a step whose data takes so much memory can move
// at best. The best of some samples, together 20 ms.
double CopyBandwidth(int threads, int64_t bytes);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_BANDWIDTH_H_
