// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/lower/loops/loop_lowering.h"
#include "kernels/cpu/word2vec/window.h"
#include "kernels/probe.h"

namespace onestep {
namespace {

class WindowLowering : public LoopLowering {
 public:
  WindowLowering(const LowerContext& context, Node& node)
      : LoopLowering(context, node),
        cbow_(node.kind == OpKind::kCbowWindow),
        run_(cbow_ ? cpu::CbowWindows : cpu::SkipGramWindows),
        outputs_(cbow_ ? 5 : 4),
        lr_(static_cast<int>(node.operands.size()) - 1) {}

  LoweredStep Run() {
    LoweredStep step;
    step.implementation = absl::StrCat("cpu ", CpuIsa());
    step.call = [run = run_, args = Args()] { run(args(), 1); };
    // A table that is no update in place is copied for each step.
    if (InPlace(0) && InPlace(1)) step.repeat = Repeat();
    return step;
  }

 private:
  int Slot(Value value) const { return context_.plan.SlotOf(value); }
  bool InPlace(int table) const {
    return Slot(node_.operands[table]) == Slot(node_.result(table + 1));
  }

  Chain::Repeat Repeat() const {
    return [run = run_, args = Args(), chain = &context_.chain,
            strides = Strides(), lr = Slot(node_.operands[lr_]),
            loss = Slot(node_.result(0))](int64_t n) {
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

  // By what the slots of all operands but lr advance where a call makes many
  // steps: these share the tables, and the rest lies one behind another.
  std::vector<std::pair<int, int64_t>> Strides() const {
    std::vector<std::pair<int, int64_t>> strides;
    for (int i = 0; i < lr_; ++i) {
      const Value operand = node_.operands[i];
      strides.push_back({Slot(operand), i < 2 ? 0 : operand.type().bytes()});
    }
    return strides;
  }

  // A function that gives the kernel's arguments for the step at hand.
  std::function<cpu::WindowArgs()> Args() const {
    const bool labelled = lr_ == outputs_ + 3;
    cpu::WindowArgs shape = {};
    shape.cols = Cols(out_[1]);
    shape.num_contexts = in_[2].num_elements();
    shape.num_outputs = in_[outputs_].num_elements();
    if (!labelled) shape.positives = node_.as<PositivesAttrs>().positives;
    context_.chain.RequestScratch(cpu::WindowScratchBytes(
        shape.num_contexts, shape.num_outputs, shape.cols));
    return [shape, in = In(0), out = In(1), contexts = In<int32_t>(2),
            mask = In(3), spread = cbow_ ? In(4) : nullptr,
            outputs = In<int32_t>(outputs_), weights = In(outputs_ + 1),
            labels = labelled ? In(outputs_ + 2) : nullptr, lr = In(lr_),
            loss = Out(0), new_in = Out(1), new_out = Out(2),
            in_bytes = out_[1].bytes(), out_bytes = out_[2].bytes(),
            scratch = Scratch()] {
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

  const bool cbow_;
  void (*const run_)(const cpu::WindowArgs& args, int64_t steps);
  const int outputs_, lr_;  // operands
};

}  // namespace

absl::StatusOr<LoweredStep> LowerWindow(const LowerContext& context,
                                        Node& node) {
  return WindowLowering(context, node).Run();
}

}  // namespace onestep
