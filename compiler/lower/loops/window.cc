// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/word2vec/window.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/lower/loops/loop_op.h"
#include "kernels/probe.h"

namespace onestep::loops {
namespace {

using RunWindows = void (*)(const cpu::WindowArgs& args, int64_t steps);

// A function that gives the kernel's arguments for the step at hand. A table
// that is not updated in place is copied first.
std::function<cpu::WindowArgs()> ArgsOf(const LoopOp& op,
                                        const WindowOp& window) {
  cpu::WindowArgs shape = {};
  shape.cols = window.in.type().dims[1];
  shape.num_contexts = window.contexts.type().num_elements();
  shape.num_outputs = window.outputs.type().num_elements();
  if (!window.labels) shape.positives = window.positives;
  return
      [shape, in = op.At(window.in), out = op.At(window.out),
       contexts = op.At<int32_t>(window.contexts),
       mask = op.At(window.cbow ? window.mean : window.mask),
       spread = op.At(window.spread), outputs = op.At<int32_t>(window.outputs),
       weights = op.At(window.weights), labels = op.At(window.labels),
       lr = op.At(window.lr), loss = op.Out(WindowOp::kLoss),
       new_in = op.Out(WindowOp::kNewIn), new_out = op.Out(WindowOp::kNewOut),
       in_bytes = window.in.type().bytes(),
       out_bytes = window.out.type().bytes(),
       scratch = op.Scratch(cpu::WindowScratchBytes(
           shape.num_contexts, shape.num_outputs, shape.cols))] {
        if (*new_in != *in) std::memcpy(*new_in, *in, in_bytes);
        if (*new_out != *out) std::memcpy(*new_out, *out, out_bytes);
        cpu::WindowArgs args = shape;
        args.in = *new_in;
        args.out = *new_out;
        args.contexts = *contexts;
        args.mask = *mask;
        if (spread != nullptr) args.spread = *spread;
        args.outputs = *outputs;
        args.weights = *weights;
        if (labels != nullptr) args.labels = *labels;
        args.lr = *lr;
        args.loss = *loss;
        args.scratch = *scratch;
        return args;
      };
}

// Many steps in one call, where they share the tables and the other operands
// lie one behind another in memory.
Chain::Repeat RepeatOf(const LoopOp& op, const WindowOp& window, RunWindows run,
                       std::function<cpu::WindowArgs()> args) {
  const auto slot_of = [&](Value v) { return op.context().plan.SlotOf(v); };
  // By what the slots advance after a step.
  std::vector<std::pair<int, int64_t>> strides;
  for (const Value v : op.node().operands) {
    if (v == window.lr) continue;
    const bool table = v == window.in || v == window.out;
    strides.push_back({slot_of(v), table ? 0 : v.type().bytes()});
  }
  return [run, args = std::move(args), chain = &op.chain(),
          strides = std::move(strides), lr = slot_of(window.lr),
          loss = slot_of(op.out(WindowOp::kLoss))](int64_t n) {
    for (const auto& [slot, bytes] : strides) {
      if (chain->stride_bytes(slot) != bytes) n = 1;
    }
    cpu::WindowArgs steps = args();
    steps.lr_stride = chain->stride_bytes(lr) / 4;
    steps.loss_stride = chain->stride_bytes(loss) / 4;
    run(steps, n);
    return n;
  };
}

Implementations LowerWindow(const LoopOp& op) {
  return {{KernelSource::kLoop, [op]() -> absl::StatusOr<LoweredStep> {
             const WindowOp window(op.node());
             const RunWindows run =
                 window.cbow ? cpu::CbowWindows : cpu::SkipGramWindows;
             const auto args = ArgsOf(op, window);
             LoweredStep step;
             step.implementation = absl::StrCat("cpu ", CpuIsa());
             step.call = [run, args] { run(args(), 1); };
             const auto in_place = [&](Value table, WindowOp::Result result) {
               const MemoryPlan& plan = op.context().plan;
               return plan.SlotOf(table) == plan.SlotOf(op.out(result));
             };
             // A table that is not updated in place is copied for each step.
             if (in_place(window.in, WindowOp::kNewIn) &&
                 in_place(window.out, WindowOp::kNewOut)) {
               step.repeat = RepeatOf(op, window, run, args);
             }
             return step;
           }}};
}

}  // namespace

Implementations LowerSgnsWindow(const LoopOp& op) { return LowerWindow(op); }
Implementations LowerCbowWindow(const LoopOp& op) { return LowerWindow(op); }

}  // namespace onestep::loops
