// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/cli_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "absl/strings/str_cat.h"
#include "trainer/data/random.h"

namespace onestep {

namespace fs = std::filesystem;

std::string IdxBytes(const std::vector<uint32_t>& dims,
                     const std::vector<uint8_t>& values) {
  std::string bytes = {0, 0, 8, static_cast<char>(dims.size())};
  for (const uint32_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes += static_cast<char>(dim >> shift & 0xff);
    }
  }
  return bytes + std::string(values.begin(), values.end());
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void CliTest::SetUp() {
  const testing::TestInfo& info =
      *testing::UnitTest::GetInstance()->current_test_info();
  dir_ = testing::TempDir() + info.test_suite_name() + "_" + info.name() + "_" +
         std::to_string(getpid());
  fs::remove_all(dir_);
  fs::create_directories(dir_);
  // What auto chose once is the choice of all tests of this process.
  const std::string cache =
      absl::StrCat(testing::TempDir(), "onestep_cache_", getpid());
  setenv("ONESTEP_CACHE", cache.c_str(), /*overwrite=*/1);
}

void CliTest::TearDown() { fs::remove_all(dir_); }

std::string CliTest::Read(const std::string& name) const {
  return ReadFile(Path(name));
}

bool CliTest::Exists(const std::string& name) const {
  return fs::exists(Path(name));
}

void CliTest::Write(const std::string& name, const std::string& bytes) const {
  fs::create_directories(fs::path(Path(name)).parent_path());
  std::ofstream(Path(name), std::ios::binary) << bytes;
}

int CliTest::Start(const std::vector<std::string>& args, const std::string& out,
                   const std::string& err) const {
  std::vector<std::string> words = {ONESTEP_TRAINER_PATH};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto absolute = [this](const std::string& name) {
    return name[0] == '/' ? name : Path(name);
  };
  const std::string out_path = absolute(out), err_path = absolute(err);
  const int pid = fork();
  if (pid != 0) return pid;
  // In the child: only what is safe after fork.
  const int out_fd = open(out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  const int err_fd = open(err_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (out_fd < 0 || err_fd < 0 || chdir(dir_.c_str()) != 0) _exit(99);
  dup2(out_fd, STDOUT_FILENO);
  dup2(err_fd, STDERR_FILENO);
  unsetenv("ONESTEP_DATA");
  execv(argv[0], argv.data());
  _exit(98);
}

int CliTest::Wait(int pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

CliResult CliTest::Run(const std::vector<std::string>& args) const {
  const int pid = Start(args, ".out", ".err");
  const int code = Wait(pid);
  return {code, Read(".out"), Read(".err")};
}

CliResult CliTest::RunUntil(const std::string& name, int signal,
                            const std::vector<std::string>& args) const {
  const int pid = Start(args, ".out", ".err");
  constexpr int kTries = 6000;  // a minute
  for (int i = 0; i < kTries && Read(name).find('\n') == std::string::npos;
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(pid, signal);
  const int code = Wait(pid);
  return {code, Read(".out"), Read(".err")};
}

void CliTest::WriteSubset(const std::string& prefix, int rows, int side,
                          uint64_t seed) const {
  Random random(seed);
  const int features = side * side;
  std::vector<uint8_t> pixels(rows * features), labels(rows);
  for (int row = 0; row < rows; ++row) {
    labels[row] = static_cast<uint8_t>(row % 10);
    for (int i = 0; i < features; ++i) {
      const bool bright = i % 10 == labels[row];
      pixels[row * features + i] =
          static_cast<uint8_t>((bright ? 150 : 0) + random.Below(100));
    }
  }
  const uint32_t count = rows, size = side;
  Write(prefix + "-images-idx3-ubyte", IdxBytes({count, size, size}, pixels));
  Write(prefix + "-labels-idx1-ubyte", IdxBytes({count}, labels));
}

void CliTest::WriteData(const std::string& name, int train_rows, int test_rows,
                        int side) const {
  WriteSubset(name + "/train", train_rows, side, 1);
  WriteSubset(name + "/t10k", test_rows, side, 2);
}

}  // namespace onestep
