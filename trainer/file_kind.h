// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_FILE_KIND_H_
#define ONESTEP_TRAINER_FILE_KIND_H_

#include <string>

namespace onestep {

// "want a regular file, got a pipe" (or a folder, device, socket) of a path
// that is there and no regular file, else "". To be asked before it is opened:
// a pipe without another end would hang.
std::string NoRegularFile(const std::string& path);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_FILE_KIND_H_
