// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_LOWER_TEAM_REPORT_H_
#define ONESTEP_COMPILER_LOWER_TEAM_REPORT_H_

#include "compiler/ir/graph.h"
#include "compiler/lower/program_memory.h"
#include "compiler/passes/partition.h"

namespace onestep {

// What dispatch single made of a graph on the CPU.
struct TeamReport {
  Partition partition;
  Graph worker;       // the program of worker 0
  int exchanges = 0;  // barriers of a step
  ProgramMemory memory;
};

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_TEAM_REPORT_H_
