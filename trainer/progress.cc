// SPDX-License-Identifier: Apache-2.0
#include "trainer/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace onestep {

Progress::Progress(int64_t epochs, int64_t steps_per_epoch)
    : terminal_(isatty(STDERR_FILENO) == 1),
      epochs_(epochs),
      steps_per_epoch_(steps_per_epoch) {}

void Progress::Update(int64_t epoch, int64_t steps, double loss) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ || now - last_ < std::chrono::milliseconds(100)) return;
  const double done =
      static_cast<double>((epoch - 1) * steps_per_epoch_ + steps);
  if (done == 0) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double total = static_cast<double>(epochs_ * steps_per_epoch_);
  const int eta = static_cast<int>(seconds / done * (total - done) + 0.5);
  // A line that wraps would leave its pieces behind.
  winsize window = {};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0;
  char line[128];
  std::snprintf(
      line,
      known && window.ws_col > 0 ? std::min<size_t>(sizeof(line), window.ws_col)
                                 : sizeof(line),
      "epoch %lld/%lld  step %lld/%lld  loss %.4f  ETA %d:%02d",
      static_cast<long long>(epoch), static_cast<long long>(epochs_),
      static_cast<long long>(steps), static_cast<long long>(steps_per_epoch_),
      loss, eta / 60, eta % 60);
  std::fprintf(stderr, "\r%s\x1b[K", line);
  shown_ = true;
}

void Progress::Clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

}  // namespace onestep
