// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/onednn.h"

#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

using dnnl::algorithm;
using dnnl::memory;

// oneDNN 3 dropped operation descriptors: a primitive descriptor is made from
// the engine and what 2.x gave to the descriptor.
template <typename Primitive, typename... Args>
typename Primitive::primitive_desc Describe(const dnnl::engine& engine,
                                            const dnnl::primitive_attr& attr,
                                            const Args&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine, args..., attr);
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(args...),
                                            attr, engine);
#endif
}

// A backward primitive also wants the forward one as a hint.
template <typename Primitive, typename Hint, typename... Args>
typename Primitive::primitive_desc DescribeGrad(
    const dnnl::engine& engine, const dnnl::primitive_attr& attr,
    const Hint& hint, const Args&... args) {
#if DNNL_VERSION_MAJOR >= 3
  return typename Primitive::primitive_desc(engine, args..., hint, attr);
#else
  return typename Primitive::primitive_desc(typename Primitive::desc(args...),
                                            attr, engine, hint);
#endif
}

void AppendEltwise(dnnl::post_ops& ops, algorithm kind, float alpha) {
#if DNNL_VERSION_MAJOR >= 3
  ops.append_eltwise(kind, alpha, 0.0f);
#else
  ops.append_eltwise(1.0f, kind, alpha, 0.0f);
#endif
}

memory::desc Desc(const OnednnView& view) {
  memory::data_type type = memory::data_type::f32;
  if (view.dtype == DType::kU8) type = memory::data_type::u8;
  if (view.dtype == DType::kI32) type = memory::data_type::s32;
  return memory::desc({view.rows, view.cols}, type,
                      memory::dims{view.row_stride, view.col_stride});
}

struct Algorithms {
  algorithm forward, backward;
};

// Throws what a primitive throws that oneDNN does not have.
Algorithms AlgorithmsOf(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return {algorithm::eltwise_relu, algorithm::eltwise_relu_use_dst_for_bwd};
    case Activation::kTanh:
      return {algorithm::eltwise_tanh, algorithm::eltwise_tanh_use_dst_for_bwd};
    case Activation::kSigmoid:
      return {algorithm::eltwise_logistic,
              algorithm::eltwise_logistic_use_dst_for_bwd};
    case Activation::kGelu:
      return {algorithm::eltwise_gelu_erf, algorithm::eltwise_gelu_erf};
    default:
      throw dnnl::error(dnnl_unimplemented, ToString(activation));
  }
}

struct Arg {
  int name;
  OnednnView view;
};

// What one call needs: alive as long as the closure that runs it.
struct Prepared {
  struct Slot {
    void* const* address;  // where it is now
    memory object;
    void* seen = nullptr;  // where the object thinks it is
  };
  dnnl::primitive primitive;
  std::vector<Slot> slots;
  std::vector<dnnl_exec_arg_t> args;

  // The C calls: the C++ ones throw, and build an argument vector every time.
  dnnl_status_t Run(const dnnl::stream& stream) {
    for (Slot& slot : slots) {
      if (*slot.address == slot.seen) continue;
      slot.seen = *slot.address;
      const dnnl_status_t status =
          dnnl_memory_set_data_handle(slot.object.get(), slot.seen);
      if (status != dnnl_success) return status;
    }
    return dnnl_primitive_execute(primitive.get(), stream.get(),
                                  static_cast<int>(args.size()), args.data());
  }
};

// A copy of a primitive_attr shares what it holds, so each primitive gets
// one of its own.
dnnl::primitive_attr NewAttr() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

}  // namespace

std::string OnednnVersion() {
  const dnnl_version_t* const v = dnnl_version();
  return absl::StrCat(v->major, ".", v->minor, ".", v->patch);
}

struct Onednn::Impl : std::enable_shared_from_this<Impl> {
  Impl(Chain* chain, int threads)
      : chain(chain),
        threads(threads),
        engine(dnnl::engine::kind::cpu, 0),
        stream(engine) {}

  dnnl::eltwise_forward::primitive_desc Forward(algorithm kind, float alpha,
                                                const memory::desc& d) {
    const auto prop = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
    return Describe<dnnl::eltwise_forward>(engine, NewAttr(), prop, kind, d, d,
                                           alpha, 0.0f);
#else
    return Describe<dnnl::eltwise_forward>(engine, NewAttr(), prop, kind, d,
                                           alpha, 0.0f);
#endif
  }

  dnnl::softmax_forward::primitive_desc Softmax(const memory::desc& d) {
    const auto prop = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
    return Describe<dnnl::softmax_forward>(
        engine, NewAttr(), prop, algorithm::softmax_accurate, d, d, 1);
#else
    return Describe<dnnl::softmax_forward>(engine, NewAttr(), prop, d, 1);
#endif
  }

  // Runs `make` with oneDNN's exceptions turned into a Status, under the
  // number of threads that the primitive will run with.
  template <typename Fn>
  absl::StatusOr<OnednnCall> Make(const char* what, const Fn& make) {
    omp_set_num_threads(threads);
    try {
      return make();
    } catch (const dnnl::error& e) {
      const std::string text = absl::StrCat("onednn ", what, ": ", e.what());
      return e.status == dnnl_unimplemented ? absl::UnimplementedError(text)
                                            : absl::InternalError(text);
    }
  }

  template <typename Primitive>
  absl::StatusOr<OnednnCall> Prepare(
      const typename Primitive::primitive_desc& desc,
      const std::vector<Arg>& list) {
    const std::string name = desc.impl_info_str();
    if (name.rfind("ref", 0) == 0 || name.rfind("simple", 0) == 0) {
      return absl::UnimplementedError(absl::StrCat("onednn: only ", name));
    }
    auto prepared = std::make_shared<Prepared>();
    prepared->primitive = Primitive(desc);
    prepared->slots.reserve(list.size() + 1);
    const auto add = [&](int arg, const memory::desc& d, int slot) {
      prepared->slots.push_back(
          {chain->address<void>(slot), memory(d, engine, DNNL_MEMORY_NONE)});
      prepared->args.push_back({arg, prepared->slots.back().object.get()});
    };
    for (const Arg& arg : list) add(arg.name, Desc(arg.view), arg.view.slot);
    const memory::desc scratch = desc.scratchpad_desc();
    if (scratch.get_size() > 0) {
      chain->RequestScratch(static_cast<int64_t>(scratch.get_size()));
      add(DNNL_ARG_SCRATCHPAD, scratch, Chain::kScratch);
    }
    auto call = [prepared, self = shared_from_this(), chain = chain, name] {
      // Another chain may have set its own.
      omp_set_num_threads(self->threads);
      const dnnl_status_t status = prepared->Run(self->stream);
      if (status != dnnl_success) {
        chain->Fail(absl::InternalError(absl::StrCat(
            "onednn ", name, ": execute failed with status ", status)));
      }
    };
    return OnednnCall{std::move(call), name};
  }

  Chain* const chain;
  const int threads;
  dnnl::engine engine;
  dnnl::stream stream;
};

Onednn::Onednn(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<Onednn> Onednn::Create(Chain* chain, int threads) {
  try {
    return Onednn(std::make_shared<Impl>(chain, threads));
  } catch (const dnnl::error& e) {
    return absl::InternalError(absl::StrCat("onednn: ", e.what()));
  }
}

absl::StatusOr<OnednnCall> Onednn::MakeMatMul(const MatMul& args) {
  return impl_->Make("matmul", [&] {
    dnnl::primitive_attr attr = NewAttr();
    dnnl::post_ops ops;
    if (args.accumulate) ops.append_sum(1.0f);
    if (args.activation != Activation::kNone) {
      AppendEltwise(ops, AlgorithmsOf(args.activation).forward, 0);
    }
    attr.set_post_ops(ops);
    std::vector<Arg> list = {{DNNL_ARG_SRC, args.a},
                             {DNNL_ARG_WEIGHTS, args.b},
                             {DNNL_ARG_DST, args.c}};
    if (!args.bias) {
      return impl_->Prepare<dnnl::matmul>(
          Describe<dnnl::matmul>(impl_->engine, attr, Desc(args.a),
                                 Desc(args.b), Desc(args.c)),
          list);
    }
    list.push_back({DNNL_ARG_BIAS, *args.bias});
    return impl_->Prepare<dnnl::matmul>(
        Describe<dnnl::matmul>(impl_->engine, attr, Desc(args.a), Desc(args.b),
                               Desc(*args.bias), Desc(args.c)),
        list);
  });
}

absl::StatusOr<OnednnCall> Onednn::MakeScale(float alpha, OnednnView x,
                                             OnednnView y) {
  return impl_->Make("scale", [&] {
    return impl_->Prepare<dnnl::eltwise_forward>(
        impl_->Forward(algorithm::eltwise_linear, alpha, Desc(x)),
        {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
  });
}

absl::StatusOr<OnednnCall> Onednn::MakeActivation(Activation activation,
                                                  OnednnView x, OnednnView y) {
  return impl_->Make("activation", [&] {
    return impl_->Prepare<dnnl::eltwise_forward>(
        impl_->Forward(AlgorithmsOf(activation).forward, 0, Desc(x)),
        {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
  });
}

absl::StatusOr<OnednnCall> Onednn::MakeActivationGrad(Activation activation,
                                                      OnednnView saved,
                                                      OnednnView dy,
                                                      OnednnView dx) {
  return impl_->Make("activation gradient", [&] {
    const algorithm kind = AlgorithmsOf(activation).backward;
    const auto hint = impl_->Forward(kind, 0.0f, Desc(saved));
    const memory::desc d = Desc(dy);
#if DNNL_VERSION_MAJOR >= 3
    const auto desc = DescribeGrad<dnnl::eltwise_backward>(
        impl_->engine, NewAttr(), hint, kind, d, d, Desc(saved), 0.0f, 0.0f);
#else
    const auto desc = DescribeGrad<dnnl::eltwise_backward>(
        impl_->engine, NewAttr(), hint, kind, d, Desc(saved), 0.0f, 0.0f);
#endif
    const int read =
        ActivationGradReadsOperand(activation) ? DNNL_ARG_SRC : DNNL_ARG_DST;
    return impl_->Prepare<dnnl::eltwise_backward>(
        desc,
        {{read, saved}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dx}});
  });
}

absl::StatusOr<OnednnCall> Onednn::MakeBinary(OnednnBinary kind, OnednnView a,
                                              OnednnView b, OnednnView y,
                                              float alpha, bool accumulate) {
  return impl_->Make("binary", [&] {
    dnnl::primitive_attr attr = NewAttr();
    dnnl::post_ops ops;
    if (alpha != 1.0f) AppendEltwise(ops, algorithm::eltwise_linear, alpha);
    if (accumulate) ops.append_sum(1.0f);
    attr.set_post_ops(ops);
    const algorithm op = kind == OnednnBinary::kAdd   ? algorithm::binary_add
                         : kind == OnednnBinary::kSub ? algorithm::binary_sub
                                                      : algorithm::binary_mul;
    return impl_->Prepare<dnnl::binary>(
        Describe<dnnl::binary>(impl_->engine, attr, op, Desc(a), Desc(b),
                               Desc(y)),
        {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, y}});
  });
}

absl::StatusOr<OnednnCall> Onednn::MakeReduceRows(OnednnView x, OnednnView y) {
  if (x.rows == 1) return absl::UnimplementedError("onednn: nothing to sum");
  return impl_->Make("reduction", [&] {
    return impl_->Prepare<dnnl::reduction>(
        Describe<dnnl::reduction>(impl_->engine, NewAttr(),
                                  algorithm::reduction_sum, Desc(x), Desc(y),
                                  0.0f, 0.0f),
        {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
  });
}

absl::StatusOr<OnednnCall> Onednn::MakeSoftmax(OnednnView x, OnednnView y) {
  return impl_->Make("softmax", [&] {
    return impl_->Prepare<dnnl::softmax_forward>(
        impl_->Softmax(Desc(x)), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
  });
}

absl::StatusOr<OnednnCall> Onednn::MakeSoftmaxGrad(OnednnView y, OnednnView dy,
                                                   OnednnView dx) {
  return impl_->Make("softmax gradient", [&] {
    const auto hint = impl_->Softmax(Desc(y));
    const memory::desc d = Desc(y);
#if DNNL_VERSION_MAJOR >= 3
    const auto desc = DescribeGrad<dnnl::softmax_backward>(
        impl_->engine, NewAttr(), hint, algorithm::softmax_accurate, d, d, d,
        1);
#else
    const auto desc = DescribeGrad<dnnl::softmax_backward>(impl_->engine, NewAttr(),
                                                           hint, d, d, 1);
#endif
    return impl_->Prepare<dnnl::softmax_backward>(
        desc,
        {{DNNL_ARG_DST, y}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dx}});
  });
}

absl::StatusOr<OnednnCall> Onednn::MakeReorder(OnednnView x, OnednnView y) {
  return impl_->Make("reorder", [&] {
    return impl_->Prepare<dnnl::reorder>(
        dnnl::reorder::primitive_desc(impl_->engine, Desc(x), impl_->engine,
                                      Desc(y), NewAttr()),
        {{DNNL_ARG_FROM, x}, {DNNL_ARG_TO, y}});
  });
}

}  // namespace onestep
