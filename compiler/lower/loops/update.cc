// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/update.h"

#include "compiler/lower/loops/loop_op.h"
#include "kernels/cpu/models/interleaved.h"
#include "runtime/base/status.h"

namespace onestep::loops {
namespace {

// A number that an update multiplies by: an attribute, or read at run time.
struct Factor {
  float* const* at = nullptr;  // null: an attribute
  float value = 0;

  float Get() const { return at == nullptr ? value : **at; }
  // Of each model, as the interleaved kernels read them.
  void Repeat(int64_t models, float* y) const {
    if (at == nullptr) {
      cpu::RepeatValue(value, models, y);
    } else {
      cpu::RepeatModels(1, *at, models, y);
    }
  }
};

class UpdateLowering : public LoopOp {
 public:
  explicit UpdateLowering(const LoopOp& op) : LoopOp(op) {}

  Call Run() {
    switch (node().kind) {
      case OpKind::kSgdUpdate:
        return models() > 1 ? SgdModels() : Sgd();
      case OpKind::kMomentumUpdate:
        return models() > 1 ? MomentumModels() : Momentum();
      case OpKind::kAdamUpdate:
        return models() > 1 ? AdamModels() : Adam();
      default:
        CHECK(false);
    }
  }

 private:
  static constexpr int kFactors = 5;  // at most
  int64_t stride() const { return models() + cpu::kRepeatPad; }

  Factor FactorOf(int operand) const { return {In(operand), 0}; }
  // Operand `operand` if there is one, else the attribute.
  Factor FactorOr(int operand, float attribute) const {
    const bool given = operand < static_cast<int>(node().operands.size());
    return given ? FactorOf(operand) : Factor{nullptr, attribute};
  }

  Call Sgd() {
    return Elementwise([w = In(0), dw = In(1), lr = FactorOf(2),
                        decay = FactorOr(3, node().as<SgdAttrs>().weight_decay),
                        w_out = Out()](int64_t b, int64_t n) {
      cpu::SgdUpdate(*w + b, *dw + b, lr.Get(), decay.Get(), *w_out + b, n);
    });
  }

  Call Momentum() {
    const MomentumAttrs& a = node().as<MomentumAttrs>();
    return Elementwise([w = In(0), dw = In(1), v = In(2), lr = FactorOf(3),
                        momentum = FactorOr(4, a.momentum),
                        decay = FactorOr(5, a.weight_decay),
                        nesterov = a.nesterov, w_out = Out(),
                        v_out = Out(1)](int64_t b, int64_t n) {
      const cpu::Momentum options = {lr.Get(), momentum.Get(), decay.Get(),
                                     nesterov};
      cpu::MomentumUpdate(*w + b, *dw + b, *v + b, options, *w_out + b,
                          *v_out + b, n);
    });
  }

  Call Adam() {
    return Elementwise([w = In(0), dw = In(1), m = In(2), v = In(3),
                        lr = FactorOf(4), decay = AdamDecay(), step = In(5),
                        options = SharedAdam(), w_out = Out(), m_out = Out(1),
                        v_out = Out(2)](int64_t b, int64_t n) {
      cpu::Adam adam = options;
      adam.lr = lr.Get();
      adam.step = **step;
      adam.weight_decay = decay.Get();
      cpu::AdamUpdate(*w + b, *dw + b, *m + b, *v + b, adam, *w_out + b,
                      *m_out + b, *v_out + b, n);
    });
  }

  // All but what is read at run time.
  cpu::Adam SharedAdam() const {
    const AdamAttrs& a = node().as<AdamAttrs>();
    cpu::Adam options = {};
    options.beta1 = a.beta1;
    options.beta2 = a.beta2;
    options.epsilon = a.epsilon;
    options.decoupled = a.decoupled;
    return options;
  }
  Factor AdamDecay() const {
    return FactorOr(6, node().as<AdamAttrs>().weight_decay);
  }

  // `prepare` fills the scratch, then fn(range) does a part of all values.
  template <typename Prepare, typename Fn>
  Call Models(Prepare prepare, Fn fn) const {
    return [prepare,
            loop = Elementwise([fn, models = models()](int64_t b, int64_t n) {
              fn(cpu::InterleavedRange{models, b, b + n});
            })] {
      prepare();
      loop();
    };
  }

  Call SgdModels() {
    float* const* at = Scratch(kFactors * stride() * sizeof(float));
    return Models(
        [=, lr = FactorOf(2),
         decay = FactorOr(3, node().as<SgdAttrs>().weight_decay),
         models = models(), stride = stride()] {
          lr.Repeat(models, *at);
          decay.Repeat(models, *at + stride);
        },
        [=, w = In(0), dw = In(1), w_out = Out(),
         stride = stride()](const cpu::InterleavedRange& range) {
          cpu::InterleavedSgd(*w, *dw, *at, *at + stride, *w_out, range);
        });
  }

  Call MomentumModels() {
    const MomentumAttrs& a = node().as<MomentumAttrs>();
    float* const* at = Scratch(kFactors * stride() * sizeof(float));
    return Models(
        [=, lr = FactorOf(3), momentum = FactorOr(4, a.momentum),
         decay = FactorOr(5, a.weight_decay), models = models(),
         stride = stride()] {
          lr.Repeat(models, *at);
          momentum.Repeat(models, *at + stride);
          decay.Repeat(models, *at + 2 * stride);
        },
        [=, nesterov = a.nesterov, w = In(0), dw = In(1), v = In(2),
         w_out = Out(), v_out = Out(1),
         stride = stride()](const cpu::InterleavedRange& range) {
          const cpu::InterleavedMomentumArgs args = {
              *at, *at + stride, *at + 2 * stride, nesterov};
          cpu::InterleavedMomentum(*w, *dw, *v, args, *w_out, *v_out, range);
        });
  }

  Call AdamModels() {
    const auto args = [at = Scratch(kFactors * stride() * sizeof(float)),
                       stride = stride()] {
      return cpu::InterleavedAdamArgs{*at + 2 * stride, *at + 3 * stride,
                                      *at + 4 * stride};
    };
    const auto adam = [options = SharedAdam(), step = In(5)] {
      cpu::Adam shared = options;
      shared.step = **step;
      return shared;
    };
    return Models(
        [=, at = Scratch(kFactors * stride() * sizeof(float)), lr = FactorOf(4),
         decay = AdamDecay(), models = models(), stride = stride()] {
          lr.Repeat(models, *at);
          decay.Repeat(models, *at + stride);
          cpu::PrepareAdam(*at, *at + stride, models, adam(), args());
        },
        [=, w = In(0), dw = In(1), m = In(2), v = In(3), w_out = Out(),
         m_out = Out(1), v_out = Out(2)](const cpu::InterleavedRange& range) {
          cpu::InterleavedAdam(*w, *dw, *m, *v, adam(), args(), *w_out, *m_out,
                               *v_out, range);
        });
  }
};

}  // namespace

Implementations LowerSgdUpdate(const LoopOp& op) {
  return op.Loop([op] { return UpdateLowering(op).Run(); });
}
Implementations LowerMomentumUpdate(const LoopOp& op) {
  return op.Loop([op] { return UpdateLowering(op).Run(); });
}
Implementations LowerAdamUpdate(const LoopOp& op) {
  return op.Loop([op] { return UpdateLowering(op).Run(); });
}

}  // namespace onestep::loops
