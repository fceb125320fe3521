// SPDX-License-Identifier: Apache-2.0
// Reads the IDX files of MNIST and its relatives, plain or gzipped (told by
// the content, not the name). The format: http://yann.lecun.com/exdb/mnist.
//
// Memory grows with the bytes that arrive, never with what a header claims.
// Errors are one line that begins with the path:
//   NotFound  the file is missing or cannot be read
//   DataLoss  anything wrong with its content
#ifndef ONESTEP_TRAINER_DATA_IDX_H_
#define ONESTEP_TRAINER_DATA_IDX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace onestep {

// What was read has count, rows and cols of at least 1.
struct IdxImages {
  int64_t count = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<uint8_t> pixels;  // [count, rows, cols]
};

// u8 of rank 3, magic 0x00000803.
absl::StatusOr<IdxImages> ReadIdxImages(const std::string& path);

// u8 of rank 1, magic 0x00000801; one label or more.
absl::StatusOr<std::vector<uint8_t>> ReadIdxLabels(const std::string& path);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_DATA_IDX_H_
