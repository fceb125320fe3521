// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_VERSION_H_
#define ONESTEP_TRAINER_VERSION_H_

#include <string>
#include <utility>
#include <vector>

namespace onestep {

// "0.1.0"
std::string Version();

// "Release", "RelWithDebInfo address,undefined": how it was compiled.
std::string BuildName();

// Name and version of the compiler and of each library we run on.
std::vector<std::pair<std::string, std::string>> LibraryVersions();

// Version, compiler, libraries and vector ISA, a line each; no newline at the
// end.
std::string VersionText();

}  // namespace onestep

#endif  // ONESTEP_TRAINER_VERSION_H_
