// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/sweep_peers.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/status.h"
#include "trainer/measure/subprocess.h"
#include "trainer/numbers.h"

namespace onestep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A folder that is gone when this is.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    if (error) return;
    std::string path = (parent / "peersXXXXXX").string();
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

absl::StatusOr<std::vector<SweepPeer>> ReadPeers(const Config& config,
                                                 const std::string& file,
                                                 std::string& note) {
  std::ifstream in(file);
  std::error_code ignored;
  if (!in || fs::is_directory(file, ignored)) {
    return absl::NotFoundError(
        absl::StrCat("--peers: cannot read ", Quote(file)));
  }
  const Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return absl::DataLossError(absl::StrCat(
        "--peers: want what bench/compare writes in ", file, ", got no JSON"));
  }
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
    note = absl::StrCat("peers: ", json.at("threads").get<int>(), " threads, ",
                        json.at("rows").get<int64_t>(), " rows, commit ",
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
  std::error_code ignored;
  if (fs::is_directory(config.peers, ignored) ||
      access(config.peers.c_str(), X_OK) != 0 ||
      absl::EndsWith(config.peers, ".json")) {
    return ReadPeers(config, config.peers, note);
  }
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    return absl::UnavailableError("--peers: cannot make a temporary folder");
  }
  RETURN_IF_ERROR(
      RunProgram(config.peers,
                 {"--data", config.data, "--model", config.model.ToString(),
                  "--threads", absl::StrCat(config.compile.threads),
                  "--batches", absl::StrJoin(config.batches, ","), "--lr",
                  absl::StrCat(config.lr), "--seed", absl::StrCat(config.seed),
                  "--out", folder.path().string()})
          .status());
  return ReadPeers(config, (folder.path() / "compare.json").string(), note);
}

}  // namespace onestep
