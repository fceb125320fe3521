// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_EXECUTABLE_H_
#define ONESTEP_RUNTIME_EXECUTABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/types.h"

namespace onestep {

// What one step of an Executable is, as plain data for the tools.
struct StepInfo {
  std::string op;              // "matmul"
  std::string phase;           // "forward", "loss", "backward", "update"
  std::string label;           // "matmul f32[32,784] x f32[784,128] -> ..."
  std::string fused_from;      // "matmul + add_bias + relu"; "" when not fused
  std::string implementation;  // "onednn brg:avx512_core", "cpu avx3"
  bool library = false;        // runs inside oneDNN or another library
  bool in_place = false;       // a result lies in the memory of an operand
  double flops = 0;            // of one execution
  double bytes = 0;            // read and written by one execution
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
  // losses. Binding starts again at `data`. Results need not be bound.
  // NotFound when the graph has no such value.
  virtual absl::Status Bind(absl::string_view name, void* data,
                            int64_t stride_bytes = 0) = 0;

  // Runs `n` train steps one after the other. FailedPrecondition names the
  // first input or param that is not bound. Allocates nothing of our own.
  virtual absl::Status Run(int64_t n) = 0;

  // Runs only step `index` of the list, without advancing addresses.
  // REQUIRES: 0 <= index < steps().size().
  virtual absl::Status RunStep(int index) = 0;

  virtual const std::vector<StepInfo>& steps() const = 0;

  // "chain of 8 calls: 2 onednn 2.6.3, 6 own loops"; what the options led to.
  virtual std::string lowering() const = 0;

  // The memory plan as text: every buffer with bytes and lifetime, the total
  // before (no reuse) and after.
  virtual const std::string& plan() const = 0;
  virtual int64_t arena_bytes() const = 0;

  // The first step dispatches this many calls: steps().size() unless the
  // lowering launches several at once.
  virtual int64_t dispatches() const { return std::ssize(steps()); }
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_EXECUTABLE_H_
