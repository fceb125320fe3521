// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_BASE_EXECUTABLE_H_
#define ONESTEP_RUNTIME_BASE_EXECUTABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/base/step_trace.h"
#include "runtime/base/types.h"

namespace onestep {

// Whether a step computes an op, exchanges data between workers, or waits for
// other workers.
enum class StepKind : uint8_t { kOp, kExchange, kWait };

// The description of one step of an Executable, as plain data for the tools.
struct StepInfo {
  StepKind kind = StepKind::kOp;
  std::string op;     // "matmul"
  std::string phase;  // "forward", "loss", "backward", "update"
  std::string label;  // "matmul f32[32,784] x f32[784,128] -> ..."
  std::vector<TensorType> operands, results;  // of the op; empty for others
  std::string fused_from;      // "matmul + add_bias + relu"; "" when not fused
  std::vector<int> origins;    // see Node::origins
  std::string implementation;  // "onednn brg:avx512_core", "cpu AVX-512"
  bool library = false;        // runs in oneDNN or another library
  bool in_place = false;       // a result aliases an operand
  double flops = 0;            // of one execution
  double bytes = 0;            // read and written by one execution
};

// Counters of the launches and copies of a device, over all runs so far.
struct DeviceTraffic {
  int64_t steps = 0, launches = 0;
  int64_t to_device_bytes = 0, to_host_bytes = 0, copies = 0;
  // The part of to_device_bytes that was copied while steps ran.
  int64_t in_steps_bytes = 0;
};

// A compiled graph: a flat list of steps over bound memory and one arena.
//
// Inputs, params and results of the graph are bound by name to the caller's
// memory, which must outlive the executable. The new value of a param replaces
// the old one in the param's memory. Not thread-safe.
class Executable {
 public:
  virtual ~Executable() = default;

  // Binds the input, param or result `name` to `data`: host memory of the
  // value's type. With `stride_bytes` != 0 the address advances by that many
  // bytes after every step of Run; learning rates, row indices and losses are
  // bound so. Each call of Bind restarts at `data`, which then holds the values
  // of `steps` steps, or with 0 of as many steps as Run is called with. A
  // device with separate memory copies them at once. Binding a result is
  // optional. Returns NotFound when the graph has no such value.
  virtual absl::Status Bind(absl::string_view name, void* data,
                            int64_t stride_bytes = 0, int64_t steps = 0) = 0;

  // Runs `n` train steps in sequence. Returns FailedPrecondition, with the
  // name, when an input or a param is not bound. This library allocates no
  // memory during the call; oneDNN and the CUDA driver may.
  virtual absl::Status Run(int64_t n) = 0;

  // Runs `n` train steps as Run does and records in `trace` when each call of
  // each worker ran. Results are bit-identical to those of Run; each call is
  // slower by one clock read. The memory of `trace` is allocated before the
  // first step. On a GPU the host synchronises after each call. Returns
  // Unimplemented when one call runs more than one step.
  virtual absl::Status RunTraced(int64_t n, StepTrace& trace) = 0;

  // A device with separate memory keeps the params there between runs. The
  // caller calls ParamsChanged after it wrote to the bound params: the next Run
  // copies them to the device. ParamsToHost copies the current params to the
  // bound memory. On the CPU both do nothing.
  virtual void ParamsChanged() {}
  virtual absl::Status ParamsToHost() { return absl::OkStatus(); }

  virtual const std::vector<StepInfo>& steps() const = 0;

  // The number of workers that run in parallel, each with its own list of
  // steps; steps() is the list of worker 0.
  virtual int workers() const { return 1; }
  // REQUIRES: 0 <= worker < workers().
  virtual const std::vector<StepInfo>& WorkerSteps(int /*worker*/) const {
    return steps();
  }

  // The lowering that was chosen: "chain of 8 calls: 2 onednn 2.6.3, ...".
  virtual std::string lowering() const = 0;

  // The layout of a value of K models with n elements each, which also holds
  // for bound memory: element i of model k is at [i * K + k] when true, at [k *
  // n + i] when false.
  virtual bool models_innermost() const { return true; }

  // The memory plan as text: the bytes and the lifetime of every buffer, and
  // the total bytes without and with reuse.
  virtual const std::string& plan() const = 0;
  virtual int64_t arena_bytes() const = 0;

  // The number of calls or launches that dispatch the first step:
  // steps().size() unless the lowering dispatches several steps at once.
  virtual int64_t dispatches() const { return std::ssize(steps()); }

  // Launches so far, and copies to and from a device's memory; nullopt on the
  // CPU.
  virtual std::optional<DeviceTraffic> traffic() const { return std::nullopt; }
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_BASE_EXECUTABLE_H_
