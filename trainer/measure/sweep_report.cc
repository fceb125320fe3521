// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "trainer/measure/sweep.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

std::string OrDash(const char* format, const std::optional<double>& value,
                   double factor = 1) {
  if (!value) return "-";
  return absl::StrFormat(*absl::ParsedFormat<'f'>::New(format),
                         factor * *value);
}

Json ToJson(const SweepCell& cell) {
  const bool ran = cell.refused.empty();
  return {{"approach", cell.approach},
          {"device", NameOf(cell.device)},
          {"dispatch", NameOf(cell.dispatch)},
          {"fuse", cell.fuse},
          {"input", NameOf(cell.input)},
          {"batch", cell.batch},
          {"us_per_step", ran ? Json(cell.us_per_step) : Json()},
          {"seconds_per_epoch", ran ? Json(cell.seconds_per_epoch) : Json()},
          {"mfu", OrNull(cell.mfu)},
          {"validation_accuracy", OrNull(cell.validation_accuracy)},
          {"refused", cell.refused},
          {"blocks", OrNull(cell.blocks)},
          {"multiprocessors", OrNull(cell.multiprocessors)},
          {"occupancy", OrNull(cell.occupancy)},
          {"utilisation", OrNull(cell.utilisation)}};
}

bool HasGpu(const Sweep& sweep) {
  return std::any_of(
      sweep.cells.begin(), sweep.cells.end(),
      [](const SweepCell& cell) { return cell.device == Device::kGpu; });
}

std::string LineOf(const SweepCell& cell, bool gpu) {
  std::string line = absl::StrFormat("%7d  %-18s", cell.batch, cell.approach);
  if (cell.refused.empty()) {
    absl::StrAppendFormat(&line, " %11.2f %11.4f %7s %9s", cell.us_per_step,
                          cell.seconds_per_epoch,
                          OrDash("%.0f %%", cell.mfu, 100),
                          OrDash("%.4f", cell.validation_accuracy));
  } else {
    absl::StrAppendFormat(&line, " %11s %11s %7s %9s", "-", "-", "-", "-");
  }
  if (gpu) {
    absl::StrAppendFormat(&line, " %7s %5s %8s %8s",
                          OrDash("%.0f", cell.blocks),
                          OrDash("%.0f", cell.multiprocessors),
                          OrDash("%.0f %%", cell.occupancy, 100),
                          OrDash("%.0f %%", cell.utilisation, 100));
  }
  return cell.refused.empty() ? line + "\n"
                              : absl::StrCat(line, "  ", cell.refused, "\n");
}

// Where an epoch is far from its steps, by how much and why; else "".
std::string EpochNote(const SweepCell& cell, int64_t rows) {
  constexpr double kFar = 1.5;
  if (!cell.refused.empty()) return "";
  const int64_t full = rows / cell.batch;
  const int64_t all = full + (rows % cell.batch > 0 ? 1 : 0);
  const double steps = cell.seconds_per_epoch / (cell.us_per_step * 1e-6);
  if (steps <= kFar * all && kFar * steps >= full) return "";
  return absl::StrFormat(
      "batch %d, %s: an epoch took as long as %.1f steps and has %d: "
      "other work on the machine%s\n",
      cell.batch, cell.approach, steps, all,
      steps < full ? "" : ", or what an epoch does beside them");
}

std::string CrossoverText(const Crossover& crossover) {
  return crossover.batch
             ? absl::StrCat("crossover: from batch ", *crossover.batch, " on ",
                            crossover.gpu, " has a shorter epoch than ",
                            crossover.cpu, "\n")
             : absl::StrCat("crossover: none, ", crossover.cpu,
                            " has the shorter epoch at the largest batch\n");
}

}  // namespace

Json ToJson(const Sweep& sweep) {
  Json json;
  json["model"] = sweep.model;
  json["rows"] = sweep.rows;
  json["epochs"] = sweep.epochs;
  json["lr"] = sweep.lr;
  json["threads"] = sweep.threads;
  json["peak_gflops"] = sweep.peak_gflops;
  json["data"] = sweep.data;
  json["note"] = sweep.note;
  json["interrupted"] = sweep.interrupted;
  json["cells"] = Json::array();
  for (const SweepCell& cell : sweep.cells) {
    json["cells"].push_back(ToJson(cell));
  }
  json["peers"] = Json::array();
  for (const SweepPeer& peer : sweep.peers) {
    json["peers"].push_back({{"approach", peer.approach},
                             {"batch", peer.batch},
                             {"seconds_per_epoch", peer.seconds_per_epoch}});
  }
  json["crossover"] = Json::array();
  if (sweep.crossover) {
    const Crossover& crossover = *sweep.crossover;
    json["crossover"].push_back(
        {{"cpu", crossover.cpu},
         {"gpu", crossover.gpu},
         {"batch", crossover.batch ? Json(*crossover.batch) : Json()}});
  }
  return json;
}

std::string ToText(const Sweep& sweep) {
  const bool gpu = HasGpu(sweep);
  std::string text = absl::StrFormat(
      "sweep: %s on %d rows of %s; accuracy on the validation rows after %d %s "
      "at lr %g, the same at all batches\n\n"
      "  batch  %-18s %11s %11s %7s %9s%s\n",
      sweep.model, sweep.rows, sweep.data, sweep.epochs,
      sweep.epochs == 1 ? "epoch" : "epochs", sweep.lr, "way", "us a step",
      "s an epoch", "MFU", "accuracy",
      gpu ? "  blocks   SMs   warps  counter" : "");
  for (size_t i = 0; i < sweep.cells.size(); ++i) {
    const SweepCell& cell = sweep.cells[i];
    absl::StrAppend(&text, LineOf(cell, gpu));
    const bool last =
        i + 1 == sweep.cells.size() || sweep.cells[i + 1].batch != cell.batch;
    if (!last) continue;
    for (const SweepPeer& peer : sweep.peers) {
      if (peer.batch != cell.batch) continue;
      absl::StrAppendFormat(&text, "%7d  %-18s %11s %11.4f\n", peer.batch,
                            peer.approach, "", peer.seconds_per_epoch);
    }
  }
  absl::StrAppend(
      &text,
      sweep.interrupted ? "interrupted: the rest was not measured\n" : "",
      "us a step: many full steps in a row, the median of samples; s an epoch: "
      "the median of\nwhole epochs, with the drawing of the order, the short "
      "last batch and the check of the weights\n");
  for (const SweepCell& cell : sweep.cells) {
    absl::StrAppend(&text, EpochNote(cell, sweep.rows));
  }
  absl::StrAppendFormat(
      &text,
      "MFU: the textbook's FLOPs, as a share of %.1f GFLOP/s of multiply-adds "
      "on %d threads; above 100 %%: zeros are skipped\n",
      sweep.peak_gflops, sweep.threads);
  if (sweep.crossover) absl::StrAppend(&text, CrossoverText(*sweep.crossover));
  if (!sweep.note.empty()) absl::StrAppend(&text, sweep.note, "\n");
  return text;
}

}  // namespace onestep
