// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_STATUS_LINE_H_
#define ONESTEP_TRAINER_STATUS_LINE_H_

#include <unistd.h>

#include <cstdio>
#include <string>

namespace onestep {

// One line on stderr that is written over and over; nothing when stderr is no
// terminal.
class StatusLine {
 public:
  // `verb` begins the line: "bench".
  explicit StatusLine(std::string verb) : verb_(std::move(verb)) {}
  ~StatusLine() { Clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void Show(const std::string& text) const {
    if (!terminal_) return;
    std::fprintf(stderr, "\r%s: %s\x1b[K", verb_.c_str(), text.c_str());
  }

  // Before results are printed on the same terminal.
  void Clear() const {
    if (terminal_) std::fputs("\r\x1b[K", stderr);
  }

 private:
  const std::string verb_;
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_STATUS_LINE_H_
