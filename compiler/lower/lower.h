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
// need them, so that it is what the chain runs. Unimplemented when it has an
// exchange between workers.
absl::StatusOr<std::unique_ptr<Executable>> LowerToChain(Graph& graph,
                                                         KernelChoice choice,
                                                         int threads);

struct TeamOptions {
  int workers = 1;
  Affinity affinity;
  // Matmuls by a library's made kernels where there are any; else our loops.
  bool micro_gemm = true;
  PartitionOptions partition;
};

struct LoweredTeam {
  std::unique_ptr<Executable> executable;
  Partition partition;
  Graph worker;       // worker 0's
  int exchanges = 0;  // barriers of a step
};

// "libxsmm 1.17.0"; nullptr: there is none.
const char* TeamMatMulLibrary();

// One program per worker, all steps of a Run in one dispatch (partition.h).
// Unimplemented, naming the op, when the team cannot run the graph.
absl::StatusOr<LoweredTeam> LowerToTeam(const Graph& graph,
                                        const TeamOptions& options);

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

// What a step that runs `node` is, but for its implementation.
StepInfo Describe(const MemoryPlan& plan, Node& node);

// The step that copies a param's new value to its place, when a step ends.
void AddCopyStep(const MemoryPlan& plan, Chain& chain, int from, int to);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_LOWER_LOWER_H_
