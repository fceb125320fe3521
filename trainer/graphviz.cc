// SPDX-License-Identifier: Apache-2.0
#include "trainer/graphviz.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

extern char** environ;

namespace onestep {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
// A file without a name, which ends when it is closed: both sides of `dot` are
// files, so that neither program can wait for the other.
using TempFile = std::unique_ptr<std::FILE, Close>;

absl::Status Failed(const char* what, int error) {
  return absl::InternalError(
      absl::StrCat("dot: ", what, ": ", std::strerror(error)));
}

absl::Status Spawn(const std::string& program, std::FILE* in, std::FILE* out) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(in), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
  std::string name = program, format = "-Tsvg";
  char* args[] = {name.data(), format.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, program.c_str(), &actions,
                                 /*attrp=*/nullptr, args, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    return absl::UnavailableError(
        absl::StrCat(program, ": not found; install graphviz"));
  }
  if (error != 0) return Failed("cannot start", error);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Failed("cannot wait", errno);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InternalError(
      WIFEXITED(status)
          ? absl::StrCat(program, ": exit code ", WEXITSTATUS(status))
          : absl::StrCat(program, ": ended by signal ", WTERMSIG(status)));
}

}  // namespace

absl::StatusOr<std::string> DotToSvg(const std::string& dot,
                                     const std::string& program) {
  const TempFile in(std::tmpfile()), out(std::tmpfile());
  if (in == nullptr || out == nullptr) {
    return Failed("no temporary file", errno);
  }
  if (std::fwrite(dot.data(), 1, dot.size(), in.get()) != dot.size() ||
      std::fflush(in.get()) != 0) {
    return Failed("cannot write a temporary file", errno);
  }
  std::rewind(in.get());
  RETURN_IF_ERROR(Spawn(program, in.get(), out.get()));
  std::string svg;
  char chunk[4096];
  std::rewind(out.get());
  while (const size_t count = std::fread(chunk, 1, sizeof chunk, out.get())) {
    svg.append(chunk, count);
  }
  return svg;
}

}  // namespace onestep
