// SPDX-License-Identifier: Apache-2.0
// Checkpoints are safetensors files, which other programs read too
// (https://github.com/huggingface/safetensors#format): the length of the
// header as a little-endian u64, the header as JSON padded with spaces to a
// multiple of 8 bytes, then the values of all tensors without gap or overlap.
#ifndef ONESTEP_TRAINER_CHECKPOINT_H_
#define ONESTEP_TRAINER_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace onestep {

struct NamedTensor {
  std::string name;
  std::vector<int64_t> dims;  // none is a scalar
  std::vector<float> values;  // row-major, as many as the product of dims
};

struct Checkpoint {
  std::map<std::string, std::string> metadata;
  std::vector<NamedTensor> tensors;  // in the order of their values on disk
};

// Replaces `path` in one step, by an AtomicFile, with its errors. Equal
// checkpoints give equal bytes. Bytes of names and metadata that are not UTF-8
// become U+FFFD.
// REQUIRES: the names differ and none is "__metadata__"; sizes fit the dims;
// no other thread of this process writes the same path.
absl::Status WriteCheckpoint(const std::string& path,
                             const Checkpoint& checkpoint);

// Reads a safetensors file of f32 tensors, written here or elsewhere, and
// believes nothing in it. NotFound when the file is missing or cannot be read;
// DataLoss, in one line that names the file and the tensor, for the rest.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_CHECKPOINT_H_
