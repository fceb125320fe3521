// SPDX-License-Identifier: Apache-2.0
#include "trainer/file_kind.h"

#include <filesystem>
#include <system_error>

namespace onestep {

std::string NoRegularFile(const std::string& path) {
  using std::filesystem::file_type;
  const std::string want = "want a regular file, got ";
  std::error_code ignored;
  switch (std::filesystem::status(path, ignored).type()) {
    case file_type::directory:
      return want + "a folder";
    case file_type::fifo:
      return want + "a pipe";
    case file_type::socket:
      return want + "a socket";
    case file_type::block:
    case file_type::character:
      return want + "a device";
    default:
      return "";
  }
}

}  // namespace onestep
