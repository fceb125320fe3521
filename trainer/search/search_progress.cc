// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/search_progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "runtime/base/clock.h"
#include "trainer/console.h"
#include "trainer/search/search_report.h"
#include "trainer/search/trial_columns.h"

namespace onestep {
namespace {

constexpr size_t kTopTrials = 8;

// The best of those that have an epoch.
std::string TopTrials(const SearchOutcome& outcome) {
  std::vector<const TrialResult*> top;
  for (const TrialResult* result : BestFirst(outcome)) {
    if (top.size() == kTopTrials) break;
    if (!result->epochs.empty()) top.push_back(result);
  }
  return absl::StrReplaceAll(TrialTable(top, outcome.varied),
                             {{"broken off", "training"}});
}

std::string BestText(const SearchOutcome& outcome) {
  if (outcome.best < 0) return "no best yet";
  const TrialEpoch& last = outcome.results[outcome.best].epochs.back();
  return absl::StrFormat(
      "best trial %d, validation loss %.5g, accuracy %.2f %%", outcome.best,
      last.validation_loss, 100 * last.validation_accuracy);
}

double Seconds(int64_t begin_ns) {
  return static_cast<double>(NowNs() - begin_ns) * 1e-9;
}

}  // namespace

SearchProgress::SearchProgress(int64_t waves, int64_t epochs)
    : terminal_(isatty(STDERR_FILENO) == 1),
      waves_(waves),
      epochs_(epochs),
      begin_ns_(NowNs()) {}

void SearchProgress::BeginEpoch(const SearchOutcome& so_far) {
  in_epoch_ = true;
  epoch_begin_ns_ = NowNs();
  running_ = waiting_ = 0;
  epoch_ = 1;
  for (const TrialResult& result : so_far.results) {
    const double size =
        static_cast<double>(result.trial.model.num_parameters());
    const int64_t done = static_cast<int64_t>(result.epochs.size());
    if (result.status == TrialStatus::kTraining) {
      epoch_ = done + 1;
      running_ += size;
      waiting_ += size * static_cast<double>(epochs_ - done - 1);
    } else if (result.status == TrialStatus::kWaiting) {
      waiting_ += size * static_cast<double>(epochs_);
    }
  }
  if (!so_far.epochs.empty()) wave_ = so_far.epochs.back().wave + (epoch_ == 1);
}

void SearchProgress::Update(const SearchOutcome& so_far, int64_t steps,
                            int64_t of) {
  if (!in_epoch_) BeginEpoch(so_far);
  if (!terminal_ || (lines_ > 0 && Seconds(drawn_ns_) < 0.1)) return;
  drawn_ns_ = NowNs();
  const double share = static_cast<double>(steps) /
                       static_cast<double>(std::max<int64_t>(1, of));
  Draw(absl::StrFormat(
      "%swave %d/%d  epoch %d/%d  %.0f %%  %.0f steps/s  %s\n", top_, wave_,
      waves_, epoch_, epochs_, 100 * share,
      static_cast<double>(steps) / std::max(Seconds(epoch_begin_ns_), 1e-3),
      Eta(share)));
}

void SearchProgress::EndEpoch(const SearchOutcome& so_far) {
  done_ += running_;
  running_ = 0;
  in_epoch_ = false;
  if (terminal_) {
    top_ = TopTrials(so_far);
    return;
  }
  const WaveEpoch& epoch = so_far.epochs.back();
  Console::Notice(absl::StrFormat(
      "wave %d/%d, epoch %d/%d: %d %s in %.2f s, %s, %s", epoch.wave, waves_,
      epoch.epoch, epochs_, epoch.trials,
      epoch.trials == 1 ? "trial" : "trials",
      epoch.train_seconds + epoch.evaluate_seconds, BestText(so_far), Eta(0)));
}

std::string SearchProgress::Eta(double share) const {
  const double done = done_ + share * running_;
  if (done == 0) return "ETA -:--";
  const double left = (1 - share) * running_ + waiting_;
  const int64_t seconds =
      static_cast<int64_t>(Seconds(begin_ns_) / done * left + 0.5);
  return absl::StrFormat("ETA %d:%02d", seconds / 60, seconds % 60);
}

// A line that wraps, or a first one that left the screen, could not be drawn
// over.
void SearchProgress::Draw(const std::string& text) {
  winsize window = {};
  ioctl(STDERR_FILENO, TIOCGWINSZ, &window);
  const size_t columns = window.ws_col > 0 ? window.ws_col : 80;
  const size_t rows = window.ws_row > 1 ? window.ws_row - 1 : 1;
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  lines.pop_back();  // behind the last newline
  if (lines.size() > rows) lines.erase(lines.begin(), lines.end() - rows);
  std::string out = lines_ > 0 ? absl::StrFormat("\x1b[%dA", lines_) : "";
  absl::StrAppend(&out, "\x1b[J");
  for (const std::string& line : lines) {
    absl::StrAppend(&out, line.substr(0, columns), "\n");
  }
  std::fputs(out.c_str(), stderr);
  lines_ = static_cast<int>(lines.size());
}

void SearchProgress::Clear() {
  if (lines_ > 0) std::fprintf(stderr, "\x1b[%dA\x1b[J", lines_);
  lines_ = 0;
}

}  // namespace onestep
