// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "runtime/base/status.h"
#include "trainer/exit_code.h"
#include "trainer/interrupt.h"

namespace onestep {
namespace {

// How late a signal is seen that came just before we waited, and the end of a
// program whose pipes another one keeps.
constexpr int kPollMs = 500;
// Its pipes are closed: it is about to end.
constexpr int kEndMs = 1;

absl::Status SystemError(absl::string_view what, int error) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(error)));
}

// What a program writes to one of its streams.
class Pipe {
 public:
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    Close(read_);
    Close(write_);
  }

  absl::Status Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe", errno);
    read_ = ends[0];
    write_ = ends[1];
    return absl::OkStatus();
  }
  void CloseWriteEnd() { Close(write_); }
  // Reads what is there, and closes at its end.
  void Read() {
    char buffer[4096];
    const ssize_t count = read(read_, buffer, sizeof(buffer));
    if (count > 0) {
      text_.append(buffer, count);
    } else if (count == 0 || errno != EINTR) {
      Close(read_);
    }
  }
  pollfd Polled() const { return {read_, POLLIN, 0}; }
  bool open() const { return read_ >= 0; }
  int write_end() const { return write_; }
  std::string& text() { return text_; }

 private:
  static void Close(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }

  int read_ = -1, write_ = -1;
  std::string text_;
};

// In a process group of its own.
absl::StatusOr<pid_t> Spawn(const std::string& program,
                            const std::vector<std::string>& args,
                            const Pipe& out, const Pipe& err) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& arg : args) {
    argv.push_back(const_cast<char*>(arg.c_str()));
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out.write_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end(), STDERR_FILENO);
  posix_spawnattr_t attributes;  // whose group is 0, the program's own
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), &actions, &attributes,
                                argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return SystemError(program, error);
  return pid;
}

// Until the program has ended, whoever else has the pipes; returns how it did.
// A signal for us is one for all that it started.
int ReadUntilEnd(pid_t pid, Pipe& out, Pipe& err) {
  bool told = false, ended = false;
  int status = 0;
  while (true) {
    if (!ended) ended = waitpid(pid, &status, WNOHANG) != 0;
    if (!ended && !told && PendingSignal() != 0) {
      kill(-pid, PendingSignal());
      told = true;
    }
    pollfd polled[] = {out.Polled(), err.Polled()};
    const int wait_ms = out.open() || err.open() ? kPollMs : kEndMs;
    if (poll(polled, 2, ended ? 0 : wait_ms) > 0) {
      if (polled[0].revents != 0) out.Read();
      if (polled[1].revents != 0) err.Read();
    } else if (ended) {
      return status;
    }
  }
}

// Removes the last line that is not empty, and returns it.
std::string TakeLastLine(std::string& text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t begin = text.rfind('\n') + 1;  // 0 where there is none
  std::string line = text.substr(begin);
  text.resize(begin);
  return line;
}

}  // namespace

absl::StatusOr<std::string> RunProgram(const std::string& program,
                                       const std::vector<std::string>& args) {
  Pipe out, err;
  RETURN_IF_ERROR(out.Open());
  RETURN_IF_ERROR(err.Open());
  if (PendingSignal() != 0) return absl::CancelledError("stopped");
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(program, args, out, err));
  out.CloseWriteEnd();
  err.CloseWriteEnd();
  const int status = ReadUntilEnd(pid, out, err);
  if (PendingSignal() != 0) return absl::CancelledError("stopped");

  const bool failed = WIFEXITED(status) && WEXITSTATUS(status) != 0;
  std::string message;
  if (failed) message = TakeLastLine(err.text());
  std::fwrite(err.text().data(), 1, err.text().size(), stderr);
  if (WIFSIGNALED(status)) {
    return absl::InternalError(absl::StrCat(program, ": ended by signal ",
                                            WTERMSIG(status), ", ",
                                            strsignal(WTERMSIG(status))));
  }
  if (failed) {
    if (message.empty()) {
      message = absl::StrCat(program, ": failed with exit status ",
                             WEXITSTATUS(status), " and no message");
    }
    return absl::Status(StatusCodeOf(WEXITSTATUS(status)),
                        absl::StripPrefix(message, "trainer: "));
  }
  return std::move(out.text());
}

}  // namespace onestep
