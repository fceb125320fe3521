// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_FLAGS_H_
#define ONESTEP_TRAINER_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trainer/config.h"

namespace onestep {

struct CommandLine {
  Config config;
  std::string text;  // of --help or --version: print it and do nothing else
};

// From the arguments behind the program's name to what is to be done. The
// verb may stand anywhere among the flags; none is train. InvalidArgument, in
// one line, names flag, value and what was wanted; of an unknown flag, word
// or verb the nearest one that is known.
absl::StatusOr<CommandLine> ParseCommandLine(std::vector<std::string> args);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_FLAGS_H_
