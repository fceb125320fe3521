// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/plain_text.h"

#include "absl/strings/str_cat.h"

namespace onestep {

absl::Status CheckUnpacked(const std::string& path, std::string_view file) {
  constexpr struct {
    std::string_view magic;
    const char *kind, *unpack;
  } kPacked[] = {{"\x1f\x8b", "gzip", "gunzip -k"},
                 {"\xfd"
                  "7zXZ",
                  "xz", "unxz -k"},
                 {"\x28\xb5\x2f\xfd", "zstd", "unzstd"}};
  for (const auto& [magic, kind, unpack] : kPacked) {
    if (file.substr(0, magic.size()) != magic) continue;
    return absl::DataLossError(absl::StrCat(path,
                                            ": want an unpacked file, got ",
                                            kind, ": try ", unpack, " ", path));
  }
  return absl::OkStatus();
}

}  // namespace onestep
