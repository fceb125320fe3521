// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_GRAPHVIZ_H_
#define ONESTEP_TRAINER_GRAPHVIZ_H_

#include <string>

#include "absl/status/statusor.h"

namespace onestep {

// The picture of a graph in Graphviz' language, drawn by the program `dot` of
// $PATH. Unavailable when there is none; Internal when it fails.
absl::StatusOr<std::string> DotToSvg(const std::string& dot,
                                     const std::string& program = "dot");

}  // namespace onestep

#endif  // ONESTEP_TRAINER_GRAPHVIZ_H_
