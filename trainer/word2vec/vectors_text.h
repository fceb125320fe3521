// SPDX-License-Identifier: Apache-2.0
// The text form of vectors_file.h.
#ifndef ONESTEP_TRAINER_WORD2VEC_VECTORS_TEXT_H_
#define ONESTEP_TRAINER_WORD2VEC_VECTORS_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/word2vec/word_vectors.h"

namespace onestep {

// The first line of a text or binary file.
struct VectorsHeader {
  int64_t size = 0, dim = 0;
  size_t bytes = 0;  // of the line, with its newline
};

// Nothing when the text does not begin with a line of two integers.
std::optional<VectorsHeader> ParseVectorsHeader(std::string_view text);

// A buffer for the rows of such a header, whose rows take `row_bytes` each at
// least and have `rest` to lie in. DataLoss, before any memory is asked for,
// where they cannot; ResourceExhausted.
absl::StatusOr<Buffer> RowsOf(const VectorsHeader& header, size_t row_bytes,
                              size_t rest);

// The words of the rows that were filled in, all of them; a row whose word was
// there before goes, and its count.
void TakeWords(const std::vector<std::string_view>& words,
               WordVectors& vectors);

// Appends the lines of words [begin, end).
void FormatRows(const VectorsView& vectors, int64_t begin, int64_t end,
                std::string& text);

// With the first line or without. Messages go behind "<path>: ".
absl::StatusOr<WordVectors> ParseVectorsText(std::string_view text,
                                             int threads);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_VECTORS_TEXT_H_
