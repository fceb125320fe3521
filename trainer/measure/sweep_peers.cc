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
#include "kernels/probe.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "runtime/cpu/cpu_info.h"
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

// The name of an instruction set as CpuIsa() writes it. Files recorded by
// earlier versions have Highway's name for AVX-512.
std::string IsaNamed(const std::string& recorded) {
  return recorded == "avx3" ? "AVX-512" : recorded;
}

// How the peers' epochs differ from the sweep's: "threads 2 (here 1), ...".
// Those of other work or another machine are refused.
absl::StatusOr<std::string> Differences(const Config& config, int64_t rows,
                                        const Json& json,
                                        const std::string& file) {
  const Json& cpu = json.at("machine").at("cpu");
  const ModelSpec& model = config.model;
  const OptimizerSpec& optimizer = config.optimizer;
  struct Setting {
    const char* name;
    Json there, here;
    bool needed = false;
  };
  const Setting settings[] = {
      {"model", json.at("model"), model.ToString(), true},
      {"rows", json.at("rows"), rows, true},
      {"cpu", cpu.at("model"), CpuModelName(), true},
      {"isa", IsaNamed(cpu.at("isa").get<std::string>()), CpuIsa(), true},
      {"threads", json.at("threads"), config.compile.threads},
      {"lr", json.at("lr"), config.lr},
      // All of bench/peers have these.
      {"optimizer", NameOf(OptimizerKind::kSgd), NameOf(optimizer.kind)},
      {"weight_decay", 0, AsWritten(optimizer.weight_decay)},
      {"loss", NameOf(Loss::kSoftmaxXent), NameOf(model.loss)},
      {"activation", NameOf(Activation::kRelu), NameOf(model.activation)}};
  std::vector<std::string> differences;
  for (const Setting& setting : settings) {
    if (setting.there == setting.here) continue;
    if (setting.needed) {
      return absl::InvalidArgumentError(
          absl::StrCat("--peers ", file, ": want ", setting.name, " ",
                       setting.here.dump(), ", got ", setting.there.dump()));
    }
    differences.push_back(absl::StrCat(setting.name, " ", setting.there.dump(),
                                       " (here ", setting.here.dump(), ")"));
  }
  return absl::StrJoin(differences, ", ");
}

absl::StatusOr<std::vector<SweepPeer>> PeersIn(const Config& config,
                                               const Json& json,
                                               const std::string& file) {
  std::vector<SweepPeer> peers;
  for (const Json& row : json.at("results")) {
    const auto approach = row.at("approach").get<std::string>();
    const auto batch = row.at("batch").get<int64_t>();
    const Json median = row.value("median", Json());
    if (!median.is_number() || median <= 0) {
      return absl::DataLossError(
          absl::StrCat("--peers ", file, ": want a median above 0 of ",
                       approach, " at batch ", batch, ", got ", median.dump()));
    }
    const bool wanted =
        std::count(config.batches.begin(), config.batches.end(), batch) > 0;
    // Our own ways are cells of the sweep.
    const auto label = row.at("label").get<std::string>();
    if (!wanted || absl::StartsWith(label, "onestep")) continue;
    peers.push_back({approach, batch, median.get<double>()});
  }
  if (peers.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--peers ", file, ": want other libraries at one of --batches ",
        absl::StrJoin(config.batches, ","), ", got none"));
  }
  return peers;
}

absl::StatusOr<std::vector<SweepPeer>> ReadPeers(const Config& config,
                                                 int64_t rows,
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
  try {
    ASSIGN_OR_RETURN(const std::string differences,
                     Differences(config, rows, json, file));
    note = absl::StrCat(
        "peers: of commit ", json.at("commit").get<std::string>(), ", ",
        json.at("date").get<std::string>(),
        differences.empty() ? "" : "; they differ in ", differences);
    return PeersIn(config, json, file);
  } catch (const Json::exception& error) {
    return absl::DataLossError(
        absl::StrCat("--peers: want what bench/compare writes in ", file,
                     ", got ", error.what()));
  }
}

}  // namespace

absl::StatusOr<std::vector<SweepPeer>> PeersOf(const Config& config,
                                               int64_t rows,
                                               std::string& note) {
  std::error_code ignored;
  if (fs::is_directory(config.peers, ignored) ||
      access(config.peers.c_str(), X_OK) != 0 ||
      absl::EndsWith(config.peers, ".json")) {
    return ReadPeers(config, rows, config.peers, note);
  }
  const TemporaryFolder folder;
  if (folder.path().empty()) {
    return absl::UnavailableError("--peers: cannot make a temporary folder");
  }
  const absl::Status ran =
      RunProgram(config.peers,
                 {"--data", config.data, "--model", config.model.ToString(),
                  "--threads", absl::StrCat(config.compile.threads),
                  "--batches", absl::StrJoin(config.batches, ","), "--lr",
                  Json(config.lr).dump(), "--seed", absl::StrCat(config.seed),
                  "--out", folder.path().string()})
          .status();
  if (!ran.ok()) {
    return absl::Status(ran.code(), absl::StrCat("--peers: ", ran.message()));
  }
  return ReadPeers(config, rows, (folder.path() / "compare.json").string(),
                   note);
}

}  // namespace onestep
