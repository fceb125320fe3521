// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_COMPILER_LOWER_PROGRAM_MEMORY_H_
#define ONESTEP_COMPILER_LOWER_PROGRAM_MEMORY_H_

#include <cstdint>
#include <map>
#include <string>

#include "compiler/ir/graph.h"

namespace onestep {

struct MemoryPlan;

// Bytes that an executable holds beside what is bound to it. The first two and
// what its kernels and exchanges use for themselves are its arena_bytes().
struct ProgramMemory {
  // Of values on the way from a weight's gradient to its update, where nothing
  // else lies in the same bytes at another time. 0 where the update is part of
  // the gradient's kernel.
  int64_t gradients = 0;
  int64_t activations = 0;  // all other values of a step, constants included
  // Copies of params that the executable keeps, by name: a worker's or a
  // device's.
  std::map<std::string, int64_t> params;

  // Adds what a lowered graph, or that of one worker, has in the arena.
  void AddArena(const Graph& graph, const MemoryPlan& plan);
  // Adds a copy of each of its params.
  void AddParams(const Graph& graph);
};

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_PROGRAM_MEMORY_H_
