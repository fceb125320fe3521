// SPDX-License-Identifier: Apache-2.0
#include "trainer/sweep_peers.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/status.h"
#include "trainer/numbers.h"

extern char** environ;

namespace onestep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A folder that is gone when this is.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (fs::temp_directory_path() / "peersXXXXXX").string();
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }  // "": it could not be made

 private:
  fs::path path_;
};

// Both of its streams go to stderr, for stdout is for the sweep's result.
absl::Status RunProgram(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::NotFoundError(absl::StrCat(
        "--peers: cannot run ", arguments[0], ": ", std::strerror(error)));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("--peers: ", arguments[0], " failed, with ",
                   WIFEXITED(status) ? "exit code " : "signal ",
                   WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
}

absl::StatusOr<std::vector<SweepPeer>> ReadPeers(const Config& config,
                                                 const std::string& file,
                                                 std::string& note) {
  std::ifstream in(file);
  if (!in) {
    return absl::NotFoundError(
        absl::StrCat("--peers: cannot read ", Quote(file)));
  }
  const Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  std::vector<SweepPeer> peers;
  try {
    const auto model = json.at("model").get<std::string>();
    if (model != config.model.ToString()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--peers: want model ", config.model.ToString(), " in ",
                       file, ", got ", model));
    }
    for (const Json& row : json.at("results")) {
      const auto batch = row.at("batch").get<int64_t>();
      const bool wanted =
          std::count(config.batches.begin(), config.batches.end(), batch) > 0;
      // Our own ways are cells of the sweep.
      const auto label = row.at("label").get<std::string>();
      if (!wanted || absl::StartsWith(label, "onestep")) continue;
      peers.push_back({row.at("approach").get<std::string>(), batch,
                       row.at("median").get<double>()});
    }
    note = absl::StrCat("peers: ", json.at("threads").get<int>(),
                        " threads, 48000 rows, commit ",
                        json.at("commit").get<std::string>(), ", ",
                        json.at("date").get<std::string>());
  } catch (const Json::exception& error) {
    return absl::DataLossError(
        absl::StrCat("--peers: want what bench/compare writes in ", file,
                     ", got ", error.what()));
  }
  return peers;
}

}  // namespace

absl::StatusOr<std::vector<SweepPeer>> PeersOf(const Config& config,
                                               std::string& note) {
  if (access(config.peers.c_str(), X_OK) != 0 ||
      absl::EndsWith(config.peers, ".json")) {
    return ReadPeers(config, config.peers, note);
  }
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    return absl::UnavailableError("--peers: cannot make a temporary folder");
  }
  RETURN_IF_ERROR(RunProgram(
      {config.peers, "--data", config.data, "--threads",
       absl::StrCat(config.compile.threads), "--batches",
       absl::StrJoin(config.batches, ","), "--lr", absl::StrCat(config.lr),
       "--seed", absl::StrCat(config.seed), "--out", folder.path().string()}));
  return ReadPeers(config, (folder.path() / "compare.json").string(), note);
}

}  // namespace onestep
