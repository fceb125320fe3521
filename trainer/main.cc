// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/status.h"
#include "runtime/cpu/openmp_wait.h"
#include "trainer/commands/commands.h"
#include "trainer/console.h"
#include "trainer/exit_code.h"
#include "trainer/flags.h"
#include "trainer/interrupt.h"

namespace onestep {
namespace {

absl::Status RunVerb(const Config& config, Console& console) {
  switch (config.verb) {
    case Verb::kTrain:
      return RunTrain(config, console);
    case Verb::kEval:
      return RunEval(config, console);
    case Verb::kPredict:
      return RunPredict(config, console);
    case Verb::kGraph:
      return RunGraph(config, console);
    case Verb::kBench:
      return RunBench(config, console);
    case Verb::kInfo:
      return RunInfo(config, console);
    case Verb::kProbe:
      return RunProbe(config, console);
    case Verb::kProfile:
      return RunProfile(config, console);
    case Verb::kSweep:
      return RunSweep(config, console);
    case Verb::kAdvise:
      return RunAdvise(config, console);
    case Verb::kSearch:
      return RunSearch(config, console);
    case Verb::kNearest:
      return RunNearest(config, console);
    case Verb::kAnalogy:
      return RunAnalogy(config, console);
    case Verb::kWord2vec:
      return RunWord2vec(config, console);
    case Verb::kWord2vecEval:
      return RunWord2vecEval(config, console);
  }
  return absl::InternalError("unknown verb");
}

absl::Status Run(std::vector<std::string> args) {
  ASSIGN_OR_RETURN(const CommandLine line, ParseCommandLine(std::move(args)));
  Console console;
  absl::Status status;
  if (line.text.empty()) {
    status = RunVerb(line.config, console);
  } else {
    console.Print(line.text);
  }
  status.Update(console.Finish());
  return status;
}

// A standard stream that was closed is opened for reading, so that writing to
// it fails and no file of ours takes its number.
void ReserveStreams() {
  int fd = 0;
  do {
    fd = open("/dev/null", O_RDONLY);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

int Main(int argc, char** argv) {
  LimitOpenmpSpinning(argv);
  ReserveStreams();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a failed write, exit 6
  absl::Status status;
  try {
    status = Run({argv + 1, argv + argc});
  } catch (const std::exception& error) {  // memory, or a library's
    status = absl::InternalError(error.what());
  }
  if (!status.ok()) Console::Notice(status.message());
  return ExitCodeOf(status, PendingSignal());
}

}  // namespace
}  // namespace onestep

int main(int argc, char** argv) { return onestep::Main(argc, argv); }
