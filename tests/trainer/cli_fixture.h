// SPDX-License-Identifier: Apache-2.0
// Runs the built program as a user would, and writes small IDX data sets.
#ifndef ONESTEP_TESTS_TRAINER_CLI_FIXTURE_H_
#define ONESTEP_TESTS_TRAINER_CLI_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace onestep {

struct CliResult {
  int code = -1;  // as a shell shows it: 128 + signal when one ended it
  std::string out, err;
};

// A test with a folder of its own, removed at the end, in which the program
// is started. $ONESTEP_DATA is not set.
class CliTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  std::string Read(const std::string& name) const;
  bool Exists(const std::string& name) const;
  void Write(const std::string& name, const std::string& bytes) const;

  // Starts the program, stdout going to the file `out` and stderr to `err`
  // (names in the folder, or absolute); gives its process id.
  int Start(const std::vector<std::string>& args, const std::string& out,
            const std::string& err) const;
  static int Wait(int pid);
  CliResult Run(const std::vector<std::string>& args) const;
  // Starts, waits until file `name` has a line, sends `signal`, waits.
  CliResult RunUntil(const std::string& name, int signal,
                     const std::vector<std::string>& args) const;

  // Train and test files of a set that can be learnt, in folder `name`: side x
  // side images of 10 classes, each with pixels of its own that are bright.
  void WriteData(const std::string& name, int train_rows, int test_rows,
                 int side = 8) const;

 private:
  void WriteSubset(const std::string& prefix, int rows, int side,
                   uint64_t seed) const;

  std::string dir_;
};

// An IDX header of u8 with these dims, and the values.
std::string IdxBytes(const std::vector<uint32_t>& dims,
                     const std::vector<uint8_t>& values);

// The whole file; "" when there is none.
std::string ReadFile(const std::string& path);

}  // namespace onestep

#endif  // ONESTEP_TESTS_TRAINER_CLI_FIXTURE_H_
