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

// Whether a step computes or is there because workers share the work.
enum class StepKind : uint8_t { kOp, kExchange, kWait };

// What one step of an Executable is, as plain data for the tools.
struct StepInfo {
  StepKind kind = StepKind::kOp;
  std::string op;     // "matmul"
  std::string phase;  // "forward", "loss", "backward", "update"
  std::string label;  // "matmul f32[32,784] x f32[784,128] -> ..."
  std::vector<TensorType> operands, results;  // of an op; else none
  std::string fused_from;      // "matmul + add_bias + relu"; "" when not fused
  std::vector<int> origins;    // see Node::origins
  std::string implementation;  // "onednn brg:avx512_core", "cpu avx3"
  bool library = false;        // runs inside oneDNN or another library
  bool in_place = false;       // a result lies in the memory of an operand
  double flops = 0;            // of one execution
  double bytes = 0;            // read and written by one execution
};

// What a device was asked for by all runs so far.
struct DeviceTraffic {
  int64_t steps = 0, launches = 0;
  int64_t to_device_bytes = 0, to_host_bytes = 0, copies = 0;
  // Of to_device_bytes those copied while steps ran, not before.
  int64_t in_steps_bytes = 0;
};

// A compiled graph: a flat list of steps over bound memory and one arena.
//
// Inputs, params and results of the graph are bound by name to the caller's
// memory, which must outlive the executable. A param's update is written to
// the param's own memory. Not thread-safe.
class Executable {
 public:
  virtual ~Executable() = default;

  // Binds input, param or result `name` to `data` (host memory of the
  // value's type). With `stride_bytes` != 0 the address advances by that much
  // after every step of Run: the way of learning rates, row indices and
  // losses. Binding starts again at `data`, which holds the values of `steps`
  // steps; 0: of those that Run is asked for. A device with memory of its own
  // copies as many at once. Results need not be bound.
  // NotFound when the graph has no such value.
  virtual absl::Status Bind(absl::string_view name, void* data,
                            int64_t stride_bytes = 0, int64_t steps = 0) = 0;

  // Runs `n` train steps one after the other. FailedPrecondition names the
  // first input or param that is not bound. Allocates nothing of our own.
  virtual absl::Status Run(int64_t n) = 0;

  // As Run, and writes down when each call of each worker ran: the same calls
  // on the same values, slowed by a clock read for each. Takes the memory for
  // `trace` before the first step. On a GPU the host waits for each call.
  // Unimplemented where a call is more than a step.
  virtual absl::Status RunTraced(int64_t n, StepTrace& trace) = 0;

  // A device with memory of its own keeps the params there. ParamsChanged: the
  // caller wrote to the bound params, and the next Run takes them from there.
  // ParamsToHost: writes them as they are now to the bound memory. On the CPU
  // neither has anything to do.
  virtual void ParamsChanged() {}
  virtual absl::Status ParamsToHost() { return absl::OkStatus(); }

  virtual const std::vector<StepInfo>& steps() const = 0;

  // Workers run lists of their own side by side; steps() is worker 0's.
  virtual int workers() const { return 1; }
  // REQUIRES: 0 <= worker < workers().
  virtual const std::vector<StepInfo>& WorkerSteps(int /*worker*/) const {
    return steps();
  }

  // "chain of 8 calls: 2 onednn 2.6.3, 6 own loops"; what the options led to.
  virtual std::string lowering() const = 0;

  // Where the memory of a value of K models has its model axis, bound memory
  // included: element i of model k at [i * K + k], or else at [k * n + i].
  virtual bool models_innermost() const { return true; }

  // The memory plan as text: every buffer with bytes and lifetime, the total
  // before (no reuse) and after.
  virtual const std::string& plan() const = 0;
  virtual int64_t arena_bytes() const = 0;

  // The first step dispatches this many calls: steps().size() unless the
  // lowering launches several at once.
  virtual int64_t dispatches() const { return std::ssize(steps()); }

  // How it was launched so far, and what was copied to and from a device's own
  // memory; nullopt on the CPU.
  virtual std::optional<DeviceTraffic> traffic() const { return std::nullopt; }
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_BASE_EXECUTABLE_H_
