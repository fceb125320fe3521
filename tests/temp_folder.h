// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TESTS_TEMP_FOLDER_H_
#define ONESTEP_TESTS_TEMP_FOLDER_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace onestep {

// A new folder, which goes with the object.
class TempFolder {
 public:
  TempFolder() : path_(testing::TempDir() + "onestep_XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace onestep

#endif  // ONESTEP_TESTS_TEMP_FOLDER_H_
