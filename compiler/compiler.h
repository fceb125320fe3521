// SPDX-License-Identifier: Apache-2.0
// The compiler: a graph in, an executable out.
#ifndef ONESTEP_COMPILER_COMPILER_H_
#define ONESTEP_COMPILER_COMPILER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/dot.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/text.h"
#include "compiler/lower/cuda/cuda_options.h"
#include "compiler/lower/cuda/cuda_report.h"
#include "compiler/own_memory.h"
#include "compiler/passes/autodiff.h"
#include "compiler/passes/partition.h"
#include "compiler/passes/pipeline.h"
#include "runtime/base/executable.h"
#include "runtime/cpu/affinity.h"

namespace onestep {

enum class Device : uint8_t { kCpu, kGpu };
// How the compiled graph is launched; DESIGN.md section 5.
enum class Dispatch : uint8_t { kAuto, kOps, kGraph, kSingle };
// Which kernels are called. kAuto: in a chain without fusion one oneDNN
// primitive per op; with fusion oneDNN for the matmuls where it is faster here
// (a fixed rule by ISA and size, so that runs repeat), our own loops for the
// rest; in a team libxsmm's made kernels for the matmuls it can make.
enum class Kernels : uint8_t { kAuto, kOnednn, kLoops };

const char* ToString(Device device);
const char* ToString(Dispatch dispatch);
const char* ToString(Kernels kernels);

struct CompileOptions {
  Device device = Device::kCpu;
  bool fuse = true;
  Dispatch dispatch = Dispatch::kAuto;
  Kernels kernels = Kernels::kAuto;
  int threads = 1;
  Affinity affinity;  // of a team's workers
  std::vector<std::string> disabled_passes;
  std::string dump_dir;    // see PipelineOptions
  bool keep_text = false;  // see PipelineOptions
  SparseInput sparse;      // see PipelineOptions
  Vectorize vectorize;     // see PipelineOptions
  CudaOptions cuda;        // of device kGpu
};

// What dispatch kSingle made of a graph on the CPU.
struct TeamReport {
  Partition partition;
  Graph worker;       // the program of worker 0
  int exchanges = 0;  // barriers of a step
};

struct Compiled {
  std::unique_ptr<Executable> executable;
  std::vector<PassRecord> passes;
  Dispatch dispatch = Dispatch::kOps;  // what kAuto led to
  std::optional<TeamReport> team;
  std::optional<CudaReport> cuda;
  Graph graph;    // after the passes: what the executable runs
  double ms = 0;  // passes and lowering together
  // By NowNs: of all of it, and of the lowering.
  int64_t begin_ns = 0, lower_ns = 0, end_ns = 0;
};

// The library that makes matmuls for a team: "libxsmm 1.17.0", or "none".
std::string TeamLibrary();

// Runs the passes over `graph` and lowers it. InvalidArgument when the graph
// or an option is no valid one, Unavailable or Unimplemented
// when the device or the dispatch cannot run it here, with the reason.
absl::StatusOr<Compiled> Compile(Graph graph, const CompileOptions& options);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_COMPILER_H_
