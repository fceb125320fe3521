// SPDX-License-Identifier: Apache-2.0
// Nodes of many models, which are innermost in memory, where a model's own
// numbers meet and no loop takes all models at once.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/lower/loops/loop_op.h"
#include "kernels/cpu/models/interleaved.h"
#include "runtime/base/buffer.h"
#include "runtime/base/status.h"

namespace onestep::loops {
namespace {

// The loop of one model, called for each on values taken out for it.
class OneByOne {
 public:
  static absl::StatusOr<std::shared_ptr<OneByOne>> Create(const LoopOp& op) {
    Node& node = op.node();
    auto made = std::make_shared<OneByOne>();
    made->models_ = node.models();
    std::vector<Value> operands;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      TensorType type = node.operands[i].type();
      const bool shared = std::exchange(type.models, 0) == 0;
      std::string name = absl::StrCat("operand", i);
      operands.push_back(made->graph_.AddInput(name, type));
      made->AddPart(op, node.operands[i], std::move(name), shared, false);
    }
    ASSIGN_OR_RETURN(Node* const one,
                     made->graph_.AddNode(node.kind, operands, node.attrs));
    for (size_t r = 0; r < node.types.size(); ++r) {
      const Value result = one->result(static_cast<int>(r));
      std::string name = absl::StrCat("result", r);
      made->graph_.AddResult(name, result);
      made->AddPart(op, node.result(static_cast<int>(r)), std::move(name),
                    false, true);
    }
    const MemoryPlan plan = PlanMemory(made->graph_);
    ASSIGN_OR_RETURN(made->chain_, Chain::Create(plan.slots, plan.arena_bytes));
    const LowerContext context = {made->graph_, plan, *made->chain_, nullptr,
                                  /*threads=*/1};
    RETURN_IF_ERROR(AddChosenStep(context, *one, Lower(context, *one),
                                  {KernelSource::kLoop}));
    for (const auto& [from, to] : plan.copies) {
      AddCopyStep(plan, *made->chain_, from, to);
    }
    RETURN_IF_ERROR(made->chain_->Finish("", ""));
    for (Part& part : made->parts_) {
      if (part.shared) continue;
      ASSIGN_OR_RETURN(part.memory,
                       Buffer::Create(part.elements * sizeof(float)));
      RETURN_IF_ERROR(made->chain_->Bind(part.name, part.memory.data()));
    }
    return made;
  }

  absl::Status Run() {
    for (const Part& part : parts_) {
      if (!part.shared) continue;
      RETURN_IF_ERROR(chain_->Bind(part.name, *part.all));
    }
    for (int64_t k = 0; k < models_; ++k) {
      for (Part& part : parts_) {
        if (part.shared || part.result) continue;
        cpu::TakeModel(*part.all, models_, k, part.memory.as<float>(),
                       part.elements);
      }
      RETURN_IF_ERROR(chain_->Run(1));
      for (const Part& part : parts_) {
        if (!part.result) continue;
        cpu::PutModel(part.memory.as<float>(), models_, k, *part.all,
                      part.elements);
      }
    }
    return absl::OkStatus();
  }

 private:
  // An operand or result.
  struct Part {
    std::string name;
    float* const* all;
    int64_t elements;
    bool shared, result;
    Buffer memory;  // of one model; none when it is shared
  };

  void AddPart(const LoopOp& op, Value value, std::string name, bool shared,
               bool result) {
    parts_.push_back({std::move(name), op.At(value),
                      value.type().num_elements(), shared, result, Buffer()});
  }

  Graph graph_;
  std::unique_ptr<Chain> chain_;
  std::vector<Part> parts_;
  int64_t models_ = 0;
};

}  // namespace

Implementations OneModelAtATime(const LoopOp& op) {
  const auto make = [op]() -> absl::StatusOr<LoopOp::Call> {
    ASSIGN_OR_RETURN(std::shared_ptr<OneByOne> loop, OneByOne::Create(op));
    return LoopOp::Call([loop, &chain = op.chain()] {
      if (absl::Status s = loop->Run(); !s.ok()) chain.Fail(std::move(s));
    });
  };
  return op.Loop(make, ", one model at a time");
}

}  // namespace onestep::loops
