// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_kernels.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/lower/update_operands.h"
#include "kernels/kernels.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

using At = const CudaBindings&;

int64_t Cols(const TensorType& type) {
  return type.rank() == 0 ? 1 : type.dims.back();
}
int64_t Rows(const TensorType& type) {
  return type.num_elements() / Cols(type);
}
int64_t OneBytes(const TensorType& type) {  // of a model
  return type.num_elements() * DTypeBytes(type.dtype);
}

// Where an operand or result is: the models' lie `stride_bytes` apart, or all
// share one.
struct Place {
  int slot = -1;  // -1: there is none
  int64_t stride_bytes = 0;
};

// Knows a node's slots; gives closures that hold no pointer to it.
class KernelMaker {
 public:
  KernelMaker(const MemoryPlan& plan, Node& node) : plan_(plan), node_(node) {}

  absl::StatusOr<CudaKernel> Make() {
    switch (node_.kind) {
      case OpKind::kInput:
      case OpKind::kParam:
      case OpKind::kConstant:
        break;
      case OpKind::kExchange:
      case OpKind::kGatherSparse:
      case OpKind::kSparseMatMul:
      case OpKind::kSparseOuter:
      case OpKind::kScatterAdd:
      case OpKind::kBlockMatMul:
      case OpKind::kSigmoidBce:
      case OpKind::kSigmoidBceGrad:
      case OpKind::kSgnsWindow:
      case OpKind::kHsWindow:
      case OpKind::kCbowWindow:
        return absl::UnimplementedError(
            absl::StrCat(node_.def().name, " on device gpu"));
      case OpKind::kGatherRows:
      case OpKind::kGatherConvert:
        return Gather();
      case OpKind::kSlice:
        return Slice();
      case OpKind::kCast:
        return Cast();
      case OpKind::kOneHot:
      case OpKind::kBroadcastRows:
      case OpKind::kReduceRows:
      case OpKind::kAddBias:
        return RowOps();
      case OpKind::kScale:
      case OpKind::kMulScalar:
      case OpKind::kAdd:
      case OpKind::kMul:
      case OpKind::kBroadcastModels:
        return Arithmetic();
      case OpKind::kMatMul:
        return MatMul();
      case OpKind::kRelu:
      case OpKind::kTanh:
      case OpKind::kSigmoid:
      case OpKind::kGelu:
      case OpKind::kReluGrad:
      case OpKind::kTanhGrad:
      case OpKind::kSigmoidGrad:
      case OpKind::kGeluGrad:
      case OpKind::kActivationGrad:
        return Activations();
      case OpKind::kSoftmax:
      case OpKind::kSoftmaxGrad:
      case OpKind::kMinusOneHot:
      case OpKind::kMseGrad:
        return LossParts();
      case OpKind::kNllLoss:
      case OpKind::kMseLoss:
      case OpKind::kCountCorrect:
        return Losses();
      case OpKind::kLossGrad:
        return LossGrad();
      case OpKind::kSgdUpdate:
      case OpKind::kMomentumUpdate:
      case OpKind::kAdamUpdate:
        return Updates();
    }
    CHECK(false);
  }

 private:
  Place PlaceOf(Value value) const {
    return {plan_.SlotOf(value),
            value.type().models > 0 ? OneBytes(value.type()) : 0};
  }
  Place In(int i) const { return PlaceOf(node_.operands[i]); }
  Place OptionalIn(int i) const {
    return i < std::ssize(node_.operands) ? In(i) : Place();
  }
  Place Out(int i = 0) const { return PlaceOf(node_.result(i)); }
  const TensorType& InType(int i) const { return node_.operands[i].type(); }
  int64_t n() const { return node_.types[0].num_elements(); }

  template <typename T>
  static cuda::PerModel<T> Of(At at, Place place) {
    if (place.slot < 0) return nullptr;
    return {static_cast<T*>(at.at(place.slot)), place.stride_bytes};
  }
  static cuda::Out F32(At at, Place place) { return Of<float>(at, place); }
  // Labels and numbers of rows, which all models share.
  static const int32_t* I32(At at, Place place) {
    return Of<const int32_t>(at, place).first;
  }
  template <typename Fn>
  static CudaKernel Plain(Fn fn) {
    return {[fn](At at, void*) { return fn(at); }, 0};
  }

  CudaKernel Gather() {
    const Place table = In(0), indices = In(1), y = Out();
    const int64_t rows = InType(1).dims[0];
    const int64_t cols = InType(0).rank() == 1 ? 1 : InType(0).dims[1];
    if (node_.kind == OpKind::kGatherConvert) {
      const float alpha = node_.as<ScaleAttrs>().alpha;
      return Plain([=](At at) {
        return cuda::GatherConvert(Of<const uint8_t>(at, table).first,
                                   I32(at, indices), alpha, F32(at, y).first,
                                   rows, cols);
      });
    }
    const int64_t row_bytes = cols * DTypeBytes(InType(0).dtype);
    return Plain([=](At at) {
      return cuda::GatherRows(at.at(table.slot), I32(at, indices),
                              at.at(y.slot), rows, row_bytes);
    });
  }

  CudaKernel Slice() {
    const SliceAttrs& attrs = node_.as<SliceAttrs>();
    const TensorType &x_type = InType(0), &y_type = node_.types[0];
    const int64_t rows = y_type.dims[0];
    const int64_t row_bytes = OneBytes(y_type) / rows;
    const int64_t x_row_bytes = OneBytes(x_type) / x_type.dims[0];
    const int64_t begin_bytes =
        attrs.begin *
        (attrs.axis == 0 ? x_row_bytes : DTypeBytes(x_type.dtype));
    return Plain([=, x = In(0), y = Out()](At at) {
      auto from = Of<const char>(at, x);
      from.first += begin_bytes;
      return cuda::SliceRows(from, Of<void>(at, y), rows, row_bytes,
                             x_row_bytes);
    });
  }

  CudaKernel Cast() {
    const Place x = In(0), y = Out();
    switch (InType(0).dtype) {
      case DType::kU8:
        return Plain([=, n = n()](At at) {
          return cuda::CastU8(Of<const uint8_t>(at, x), F32(at, y), n);
        });
      case DType::kI32:
        return Plain([=, n = n()](At at) {
          return cuda::CastI32(Of<const int32_t>(at, x), F32(at, y), n);
        });
      case DType::kF32:
        return Plain([=, n = n()](At at) {
          return cuda::Scale(F32(at, x), 1, F32(at, y), n);
        });
    }
    CHECK(false);
  }

  CudaKernel RowOps() {
    const Place x = In(0), y = Out();
    const int64_t rows = Rows(node_.types[0]), cols = Cols(node_.types[0]);
    switch (node_.kind) {
      case OpKind::kOneHot:
        return Plain([=](At at) {
          return cuda::OneHot(I32(at, x), F32(at, y).first, rows, cols);
        });
      case OpKind::kBroadcastRows:
        return Plain([=](At at) {
          return cuda::BroadcastRows(F32(at, x), F32(at, y), rows, cols);
        });
      case OpKind::kAddBias:
        return Plain([=, b = In(1)](At at) {
          return cuda::AddBias(F32(at, x), F32(at, b), F32(at, y), rows, cols);
        });
      default:
        break;
    }
    const int64_t x_rows = Rows(InType(0)), x_cols = Cols(InType(0));
    return {[=](At at, void* workspace) {
              return cuda::ReduceRows(F32(at, x), F32(at, y), x_rows, x_cols,
                                      workspace);
            },
            cuda::ColumnSumsWorkspaceBytes(x_rows, x_cols)};
  }

  CudaKernel Arithmetic() {
    const Place x = In(0), y = Out();
    const Place z = OptionalIn(1);
    const int64_t n = this->n();
    switch (node_.kind) {
      case OpKind::kScale:
        return Plain([=, alpha = node_.as<ScaleAttrs>().alpha](At at) {
          return cuda::Scale(F32(at, x), alpha, F32(at, y), n);
        });
      case OpKind::kBroadcastModels:
        return Plain(
            [=](At at) { return cuda::Scale(F32(at, x), 1, F32(at, y), n); });
      case OpKind::kMulScalar:
        return Plain([=, alpha = node_.as<ScaleAttrs>().alpha](At at) {
          return cuda::MulScalar(F32(at, x), F32(at, z), alpha, F32(at, y), n);
        });
      case OpKind::kAdd:
        return Plain([=](At at) {
          return cuda::Add(F32(at, x), F32(at, z), F32(at, y), n);
        });
      case OpKind::kMul:
        return Plain([=](At at) {
          return cuda::Mul(F32(at, x), F32(at, z), F32(at, y), n);
        });
      default:
        CHECK(false);
    }
  }

  CudaKernel MatMul() {
    const MatMulAttrs& attrs = node_.as<MatMulAttrs>();
    cuda::MatMulParams params = {};
    params.m = node_.types[0].dims[0];
    params.n = node_.types[0].dims[1];
    params.k = InType(0).dims[attrs.trans_a ? 0 : 1];
    params.trans_a = attrs.trans_a;
    params.trans_b = attrs.trans_b;
    params.act = attrs.activation;
    const Place third = OptionalIn(2);
    return Plain([=, a = In(0), b = In(1), y = Out(),
                  bias = attrs.bias ? third : Place(),
                  c = attrs.accumulate ? third : Place()](At at) {
      cuda::MatMulParams p = params;
      p.a = F32(at, a);
      p.b = F32(at, b);
      p.bias = F32(at, bias);
      p.c = F32(at, c);
      p.y = F32(at, y);
      return cuda::MatMul(p);
    });
  }

  CudaKernel Activations() {
    const Place y = In(0), to = Out();
    const int64_t n = this->n();
    if (node_.kind != OpKind::kActivationGrad) {
      if (ActivationOf(node_.kind) != Activation::kNone) {
        return Plain([=, act = ActivationOf(node_.kind)](At at) {
          return cuda::Activate(act, F32(at, y), F32(at, to), n);
        });
      }
      return Plain([=, act = ActivationOfGrad(node_.kind), dy = In(1)](At at) {
        return cuda::ActivateGrad(act, F32(at, y), F32(at, dy), F32(at, to), n);
      });
    }
    const ActivationGradAttrs& attrs = node_.as<ActivationGradAttrs>();
    const int64_t rows = Rows(node_.types[0]), cols = Cols(node_.types[0]);
    const bool sums = attrs.bias != BiasGrad::kNone;
    return {[=, act = attrs.activation, dy = In(1),
             b = attrs.bias == BiasGrad::kUpdate ? In(2) : Place(),
             db = sums ? Out(1) : Place()](At at, void* workspace) {
              return cuda::ActivationGrad(act, F32(at, y), F32(at, dy),
                                          F32(at, b), F32(at, to), F32(at, db),
                                          rows, cols, workspace);
            },
            sums ? cuda::ColumnSumsWorkspaceBytes(rows, cols) : 0};
  }

  CudaKernel LossParts() {
    const Place x = In(0), y = Out();
    const int64_t rows = Rows(node_.types[0]), cols = Cols(node_.types[0]);
    switch (node_.kind) {
      case OpKind::kSoftmax:
        return Plain([=](At at) {
          return cuda::Softmax(F32(at, x), F32(at, y), rows, cols);
        });
      case OpKind::kSoftmaxGrad:
        return Plain([=, dy = In(1)](At at) {
          return cuda::SoftmaxGrad(F32(at, x), F32(at, dy), F32(at, y), rows,
                                   cols);
        });
      case OpKind::kMinusOneHot:
        return Plain([=, labels = In(1)](At at) {
          return cuda::MinusOneHot(F32(at, x), I32(at, labels), F32(at, y),
                                   rows, cols);
        });
      case OpKind::kMseGrad:
        return Plain(
            [=, t = In(1), n = n(), all = BatchElements(node_)](At at) {
              return cuda::MseGrad(F32(at, x), F32(at, t), F32(at, y), n, all);
            });
      default:
        CHECK(false);
    }
  }

  CudaKernel Losses() {
    const Place x = In(0), other = In(1), y = Out();
    const int64_t rows = Rows(InType(0)), cols = Cols(InType(0));
    switch (node_.kind) {
      case OpKind::kNllLoss:
        return {[=, batch = BatchRows(node_)](At at, void* workspace) {
                  return cuda::NllLoss(F32(at, x), I32(at, other), F32(at, y),
                                       rows, cols, batch, workspace);
                },
                cuda::LossWorkspaceBytes(rows, cols)};
      case OpKind::kMseLoss:
        return {[=, all = BatchElements(node_)](At at, void* workspace) {
                  return cuda::MseLoss(F32(at, x), F32(at, other), F32(at, y),
                                       rows * cols, all, workspace);
                },
                cuda::ColumnSumsWorkspaceBytes(rows * cols, 1)};
      case OpKind::kCountCorrect:
        return {[=](At at, void* workspace) {
                  return cuda::CountCorrect(F32(at, x), I32(at, other),
                                            F32(at, y), rows, cols, workspace);
                },
                cuda::LossWorkspaceBytes(rows, cols)};
      default:
        CHECK(false);
    }
  }

  CudaKernel LossGrad() {
    const LossGradAttrs& attrs = node_.as<LossGradAttrs>();
    cuda::LossGradParams params = {};
    params.mse = attrs.loss == Loss::kMse;
    params.rows = Rows(InType(0));
    params.cols = Cols(InType(0));
    params.batch = BatchRows(node_);
    int next = 2;
    const Place indices = attrs.gather ? In(next++) : Place();
    const Place lr = attrs.scaled ? In(next++) : Place();
    const Place bias = attrs.bias == BiasGrad::kUpdate ? In(next++) : Place();
    const Place db = attrs.bias == BiasGrad::kNone ? Place() : Out(3);
    return {[=, logits = In(0), labels = In(1), loss = Out(0), d = Out(1),
             correct = Out(2)](At at, void* workspace) {
              cuda::LossGradParams p = params;
              p.logits = F32(at, logits);
              p.labels = I32(at, labels);
              p.indices = I32(at, indices);
              p.lr = F32(at, lr);
              p.bias = F32(at, bias);
              p.loss = F32(at, loss);
              p.dlogits = F32(at, d);
              p.correct = F32(at, correct);
              p.db = F32(at, db);
              p.workspace = workspace;
              return cuda::LossGrad(p);
            },
            cuda::LossWorkspaceBytes(params.rows, params.cols)};
  }

  CudaKernel Updates() {
    const UpdateOperands update = OperandsOfUpdate(node_);
    std::vector<Place> in, out;
    for (int i = 0; i < std::ssize(node_.operands); ++i) in.push_back(In(i));
    for (int i = 0; i <= update.states; ++i) out.push_back(Out(i));
    return Plain([=, n = n()](At at) {
      cuda::UpdateParams p = {};
      p.rule = update.rule;
      p.w = F32(at, in[0]);
      p.dw = F32(at, in[1]);
      p.w_out = F32(at, out[0]);
      for (int i = 0; i < update.states; ++i) {
        p.state[i] = F32(at, in[2 + i]);
        p.state_out[i] = F32(at, out[1 + i]);
      }
      p.lr = F32(at, in[update.lr]);
      if (update.step >= 0) p.step = F32(at, in[update.step]);
      for (int i = 0; i < update.hypers; ++i) {
        const UpdateOperands::Hyper& hyper = update.hyper[i];
        p.hyper[i].value = hyper.value;
        if (hyper.operand >= 0) p.hyper[i].at = F32(at, in[hyper.operand]);
      }
      p.flag = update.flag;
      p.n = n;
      return cuda::Update(p);
    });
  }

  const MemoryPlan& plan_;
  Node& node_;
};

}  // namespace

absl::StatusOr<CudaKernel> MakeCudaKernel(const MemoryPlan& plan, Node& node) {
  ASSIGN_OR_RETURN(CudaKernel kernel, KernelMaker(plan, node).Make());
  const int64_t models = node.types[0].models;
  if (models == 0) return kernel;
  if (models > cuda::kMaxModels) {
    return absl::UnimplementedError(absl::StrCat(
        "models ", models, " on device gpu, want at most ", cuda::kMaxModels));
  }
  kernel.workspace_bytes *= models;
  kernel.launch = [models, one = std::move(kernel.launch)](At at,
                                                           void* workspace) {
    Launch launch = one(at, workspace);
    launch.grid.z = static_cast<uint32_t>(models);
    return launch;
  };
  return kernel;
}

CudaKernel CopyKernel(int from, int to, int64_t bytes) {
  return {[=](At at, void*) {
            return cuda::SliceRows(at.at(from), at.at(to), 1, bytes, bytes);
          },
          0};
}

CudaKernel ActivateKernel(Activation activation, int slot, int64_t n) {
  return {[=, act = activation](At at, void*) {
            float* const y = static_cast<float*>(at.at(slot));
            return cuda::Activate(act, y, y, n);
          },
          0};
}

CudaKernel AddKernelOf(int a, int b, int y, int64_t n) {
  return {[=](At at, void*) {
            return cuda::Add(static_cast<const float*>(at.at(a)),
                             static_cast<const float*>(at.at(b)),
                             static_cast<float*>(at.at(y)), n);
          },
          0};
}

}  // namespace onestep
