// SPDX-License-Identifier: Apache-2.0
// Nodes of many models, which are innermost in memory: where a model's own
// numbers meet, so that the loop of one model over more columns will not do.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/lower/loops/loop_lowering.h"
#include "kernels/cpu/models/interleaved.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// The loop of one model, called for each on values taken out for it.
class OneByOne {
 public:
  static absl::StatusOr<std::shared_ptr<OneByOne>> Create(
      const LowerContext& context, Node& node) {
    auto made = std::make_shared<OneByOne>();
    made->models_ = node.models();
    std::vector<Value> operands;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      TensorType type = node.operands[i].type();
      const bool shared = std::exchange(type.models, 0) == 0;
      std::string name = absl::StrCat("operand", i);
      operands.push_back(made->graph_.AddInput(name, type));
      made->AddPart(context, node.operands[i], std::move(name), shared, false);
    }
    ASSIGN_OR_RETURN(Node* const one,
                     made->graph_.AddNode(node.kind, operands, node.attrs));
    for (size_t r = 0; r < node.types.size(); ++r) {
      const Value result = one->result(static_cast<int>(r));
      std::string name = absl::StrCat("result", r);
      made->graph_.AddResult(name, result);
      made->AddPart(context, node.result(static_cast<int>(r)), std::move(name),
                    false, true);
    }
    ASSIGN_OR_RETURN(made->chain_,
                     LowerToChain(made->graph_, KernelChoice::kLoops, 1));
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

  void AddPart(const LowerContext& context, Value value, std::string name,
               bool shared, bool result) {
    parts_.push_back({std::move(name), context.Address<float>(value),
                      value.type().num_elements(), shared, result, Buffer()});
  }

  Graph graph_;
  std::unique_ptr<Executable> chain_;
  std::vector<Part> parts_;
  int64_t models_ = 0;
};

class ModelsLowering : public LoopLowering {
 public:
  using LoopLowering::LoopLowering;

  absl::StatusOr<Call> Run() {
    switch (node_.kind) {
      case OpKind::kMatMul:
        if (node_.operands[0].type().models > 0) return MatMul();
        break;
      case OpKind::kLossGrad:
        if (node_.as<LossGradAttrs>().loss == Loss::kSoftmaxXent &&
            node_.operands[0].type().dims[1] <= cpu::kInterleavedCols) {
          return XentGrad();
        }
        break;
      case OpKind::kMulScalar:
        return MulScalar();
      case OpKind::kBroadcastModels:
        return Broadcast();
      default:
        break;
    }
    ASSIGN_OR_RETURN(std::shared_ptr<OneByOne> loop,
                     OneByOne::Create(context_, node_));
    return [loop, &chain = context_.chain] {
      if (absl::Status s = loop->Run(); !s.ok()) chain.Fail(std::move(s));
    };
  }

 private:
  Call MatMul() {
    const MatMulAttrs& attrs = node_.as<MatMulAttrs>();
    const std::vector<int64_t>& a_dims = node_.operands[0].type().dims;
    cpu::InterleavedMatMulArgs args = {};
    args.models = models();
    args.m = node_.types[0].dims[0];
    args.n = node_.types[0].dims[1];
    args.k = a_dims[attrs.trans_a ? 0 : 1];
    args.a_row = attrs.trans_a ? 1 : a_dims[1];
    args.a_col = attrs.trans_a ? a_dims[1] : 1;
    args.accumulate = attrs.accumulate;
    args.act = attrs.activation;
    const bool packs = attrs.trans_b && cpu::ModelsShareVector(args.models);
    const bool strided = attrs.trans_b && !packs;
    args.b_row = strided ? 1 : args.n;
    args.b_col = strided ? args.k : 1;
    if (packs) context_.chain.RequestScratch(node_.operands[1].type().bytes());
    const int last = static_cast<int>(node_.operands.size()) - 1;
    const double row_flops = 2.0 * args.n * args.k * args.models;
    const auto grain = static_cast<int64_t>(kGrainFlops / row_flops) + 1;
    return [args, grain, threads = threads_, a = In(0), b = In(1), y = Out(),
            bias = attrs.bias ? In(2) : nullptr,
            c = attrs.accumulate ? In(last) : nullptr,
            packed = packs ? Scratch() : nullptr]() mutable {
      args.a = *a;
      args.b = *b;
      args.c = *y;
      args.bias = bias == nullptr ? nullptr : *bias;
      if (packed != nullptr) {
        cpu::InterleavedTranspose(*b, *packed, args.n, args.k, args.models);
        args.b = *packed;
      }
      if (c != nullptr && *c != *y) {
        std::memcpy(*y, *c, args.m * args.n * args.models * sizeof(float));
      }
      ParallelFor(threads, args.m, grain, [&](int64_t begin, int64_t end) {
        cpu::InterleavedMatMul(args, begin, end);
      });
    };
  }

  Call XentGrad() {
    const LossGradAttrs& attrs = node_.as<LossGradAttrs>();
    const std::vector<int64_t>& dims = node_.operands[0].type().dims;
    cpu::InterleavedXentGradArgs args = {};
    args.rows = dims[0];
    args.cols = dims[1];
    args.models = models();
    args.loss_alpha = 1.0f / BatchRows(node_);
    int next = 2;
    int32_t* const* indices = attrs.gather ? In<int32_t>(next++) : nullptr;
    float* const* lr = attrs.scaled ? In(next++) : nullptr;
    float* const* bias = attrs.bias == BiasGrad::kUpdate ? In(next++) : nullptr;
    float* const* db = attrs.bias == BiasGrad::kNone ? nullptr : Out(3);
    context_.chain.RequestScratch(args.models * sizeof(float));
    return [=, threads = threads_, logits = In(0), labels = In<int32_t>(1),
            loss = Out(0), dlogits = Out(1), correct = Out(2),
            alpha = Scratch()]() mutable {
      args.logits = *logits;
      args.labels = *labels;
      args.indices = indices == nullptr ? nullptr : *indices;
      args.dlogits = *dlogits;
      args.loss = *loss;
      args.correct = *correct;
      args.alpha = *alpha;
      args.db = db == nullptr ? nullptr : *db;
      args.bias = bias == nullptr ? nullptr : *bias;
      for (int64_t k = 0; k < args.models; ++k) {
        (*alpha)[k] =
            lr == nullptr ? args.loss_alpha : -(*lr)[k] * args.loss_alpha;
      }
      ParallelFor(threads, args.models, kLineFloats,
                  [&](int64_t begin, int64_t end) {
                    cpu::InterleavedXentGrad(args, begin, end);
                  });
    };
  }

  Call MulScalar() {
    context_.chain.RequestScratch((models() + cpu::kRepeatPad) * sizeof(float));
    return [loop = Elementwise([x = In(0), y = Out(), factor = Scratch(),
                                models = models()](int64_t b, int64_t n) {
              cpu::InterleavedScale(*factor, *x, *y, {models, b, b + n});
            }),
            alpha = node_.as<ScaleAttrs>().alpha, s = In(1), factor = Scratch(),
            models = models()] {
      cpu::RepeatModels(alpha, *s, models, *factor);
      loop();
    };
  }

  Call Broadcast() {
    return
        [x = In(0), y = Out(), n = in_[0].num_elements(), models = models()] {
          cpu::InterleavedBroadcast(*x, *y, n, models);
        };
  }
};

}  // namespace

bool NeedsModelLoop(const Node& node) {
  if (node.kind == OpKind::kBroadcastModels) return true;
  // One model lies in memory as it would without a model axis.
  if (node.models() <= 1) return false;
  switch (node.kind) {
    case OpKind::kMatMul:
      // What all share is a row for each column, whose ever it is.
      return node.operands[0].type().models > 0 ||
             node.as<MatMulAttrs>().trans_b;
    case OpKind::kMseGrad:
      return node.operands[0].type() != node.operands[1].type();
    case OpKind::kScatterAdd:
    case OpKind::kBlockMatMul:
    case OpKind::kSigmoidBce:
    case OpKind::kSigmoidBceGrad:
    case OpKind::kSgnsWindow:
    case OpKind::kHsWindow:
    case OpKind::kCbowWindow:
    case OpKind::kMulScalar:
    case OpKind::kSoftmax:
    case OpKind::kSoftmaxGrad:
    case OpKind::kNllLoss:
    case OpKind::kMinusOneHot:
    case OpKind::kMseLoss:
    case OpKind::kCountCorrect:
    case OpKind::kLossGrad:
      return true;
    default:
      return false;
  }
}

absl::StatusOr<Chain::Call> LowerModels(const LowerContext& context,
                                        Node& node) {
  return ModelsLowering(context, node).Run();
}

}  // namespace onestep
