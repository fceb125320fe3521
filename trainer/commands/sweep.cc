// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/sweep.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "trainer/commands/commands.h"
#include "trainer/interrupt.h"
#include "trainer/json_text.h"
#include "trainer/measure/environment.h"
#include "trainer/measure/sweep_peers.h"
#include "trainer/status_line.h"

namespace onestep {

absl::Status RunSweep(const Config& config, Console& console) {
  Config completed = config;
  ASSIGN_OR_RETURN(const TrainingData data, LoadTrainingData(completed));
  CatchSignals();
  std::vector<SweepPeer> peers;
  std::string peers_note;
  if (!config.peers.empty()) {
    ASSIGN_OR_RETURN(peers,
                     PeersOf(completed, data.split.train_rows, peers_note));
  }
  const EnvironmentWatch watch;
  const StatusLine line("sweep");
  ASSIGN_OR_RETURN(Sweep sweep, RunSweepCells(completed, data,
                                              [&line](const std::string& text) {
                                                line.Show(text);
                                              }));
  line.Clear();
  sweep.peers = std::move(peers);
  if (!peers_note.empty()) {
    absl::StrAppend(&sweep.note, sweep.note.empty() ? "" : "; ", peers_note);
  }
  const Environment environment = watch.SoFar();
  nlohmann::ordered_json json = ToJson(sweep);
  json["environment"] = ToJson(environment);
  console.Print(config.json
                    ? absl::StrCat(JsonText(json, 2), "\n")
                    : absl::StrCat(ToText(sweep),
                                   "machine: ", ToString(environment), "\n"));
  if (sweep.interrupted) return absl::CancelledError("stopped");
  if (!NothingMeasured(sweep)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "sweep: nothing could be measured: ", sweep.cells[0].approach, ": ",
      sweep.cells[0].refused));
}

}  // namespace onestep
