// SPDX-License-Identifier: Apache-2.0
// How files that others made may begin.
#ifndef ONESTEP_TRAINER_WORD2VEC_PLAIN_TEXT_H_
#define ONESTEP_TRAINER_WORD2VEC_PLAIN_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace onestep {

// Of what gzip, xz or zstd packed: DataLoss "PATH: want an unpacked file, got
// gzip: try gunzip -k PATH".
absl::Status CheckUnpacked(const std::string& path, std::string_view file);

// Without the byte order mark that some editors begin UTF-8 with.
inline std::string_view SkipByteOrderMark(std::string_view text) {
  return text.substr(text.substr(0, 3) == "\xef\xbb\xbf" ? 3 : 0);
}

}  // namespace onestep

#endif  // ONESTEP_TRAINER_WORD2VEC_PLAIN_TEXT_H_
