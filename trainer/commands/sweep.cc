// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/sweep.h"

#include "absl/strings/str_cat.h"
#include "runtime/status.h"
#include "trainer/commands/commands.h"
#include "trainer/interrupt.h"
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
    ASSIGN_OR_RETURN(peers, PeersOf(completed, peers_note));
  }
  StatusLine line("sweep");
  ASSIGN_OR_RETURN(Sweep sweep, RunSweepCells(completed, data,
                                              [&line](const std::string& text) {
                                                line.Show(text);
                                              }));
  sweep.peers = std::move(peers);
  if (!peers_note.empty()) {
    absl::StrAppend(&sweep.note, sweep.note.empty() ? "" : "; ", peers_note);
  }
  console.Print(config.json ? absl::StrCat(ToJson(sweep).dump(2), "\n")
                            : ToText(sweep));
  return absl::OkStatus();
}

}  // namespace onestep
