// SPDX-License-Identifier: Apache-2.0
// Lowerings: a graph becomes an executable.
#ifndef ONESTEP_COMPILER_LOWER_LOWER_H_
#define ONESTEP_COMPILER_LOWER_LOWER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "compiler/lower/cuda/cuda_options.h"
#include "compiler/lower/cuda/cuda_report.h"
#include "compiler/lower/memory_plan.h"
#include "compiler/lower/program_memory.h"
#include "compiler/lower/team_report.h"
#include "compiler/passes/partition.h"
#include "runtime/base/executable.h"
#include "runtime/cpu/affinity.h"
#include "runtime/cpu/chain.h"
#include "runtime/cpu/onednn.h"
#include "runtime/cuda/cuda_program.h"

namespace onestep {

// Which kernel a node of a chain gets.
enum class KernelChoice : uint8_t {
  kOnednn,  // a oneDNN primitive wherever oneDNN has one, else a loop
  kLoops,   // our own loops only
  kBySize,  // oneDNN for the matmuls where it is faster, else loops
};

// One call per node, in order. Adds copying nodes to `graph` where outputs
// need them, so that it is what the chain runs; adds to
// `memory`, where it is given. Unimplemented when it has an
// exchange between workers.
absl::StatusOr<std::unique_ptr<Executable>> LowerToChain(
    Graph& graph, KernelChoice choice, int threads,
    ProgramMemory* memory = nullptr);

struct TeamOptions {
  int workers = 1;
  Affinity affinity;
  // Matmuls by a library's made kernels where there are any; else our loops.
  bool micro_gemm = true;
  PartitionOptions partition;
};

// "libxsmm 1.17.0"; nullptr: there is none.
const char* TeamMatMulLibrary();

// One program per worker, all steps of a Run in one dispatch (partition.h).
// Fills `report`. Unimplemented, naming the op, when the team cannot run the
// graph.
absl::StatusOr<std::unique_ptr<Executable>> LowerToTeam(
    const Graph& graph, const TeamOptions& options, TeamReport& report);

// Which launches: any, the best by tier; each op by itself; a graph of them;
// one kernel for whole steps.
enum class CudaWay : uint8_t { kAuto, kOps, kGraph, kSingle };

struct CudaRequest {
  CudaWay way = CudaWay::kAuto;
  bool fuse = true;     // whether graph is a fused one
  bool library = true;  // matmuls by cuBLASLt; else our own kernel
};

// Fills `report`. Adds copying nodes to `graph` where outputs need them.
// Unavailable with the reason, when there is no GPU to run on and the plan
// alone was not asked for; Unimplemented when no allowed tier takes the graph.
absl::StatusOr<std::unique_ptr<CudaProgram>> LowerToCuda(
    Graph& graph, const CudaRequest& request, const CudaOptions& options,
    CudaReport& report);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_LOWER_H_
