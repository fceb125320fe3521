// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_WORD2VEC_ROW_VISITS_H_
#define ONESTEP_TRAINER_WORD2VEC_ROW_VISITS_H_

#include <cstdint>
#include <vector>

#include "trainer/word2vec/embedding_tables.h"
#include "trainer/word2vec/window_sampler.h"

namespace onestep {

// In how many pairs of a window (of a centre that is used) the `rows` most
// frequent rows of the tables take part on average: of `in` as a context or of
// `out` as an output, whichever is more.
std::vector<double> VisitsOfRows(const SamplerSource& source, int64_t rows);

// How many windows a worker may train with its own copy of a row before it adds
// to the row what it learnt, while `others` do so too. Each goes as far as if
// it were alone; where together they go too far, training diverges.
double WindowsUnseen(double visits, int others, double lr);

// When copies of the `rows` most frequent rows are merged, in groups of rows of
// like visits: in so many windows, or in `most`, so that all take part.
std::vector<MergeGroup> MergeGroups(const SamplerSource& source, int64_t rows,
                                    int others, int64_t most);

// The steps of so many windows, of the most frequent rows: `most` at most, but
// those of one window.
int64_t StepsUnseen(const SamplerSource& source, int others, int64_t most);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_ROW_VISITS_H_
