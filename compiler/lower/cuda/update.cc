// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_op.h"

namespace onestep::gpu {
namespace {

cuda::Hyper HyperOf(At at, float value, Place place) {
  cuda::Hyper hyper(value);
  hyper.at = F32(at, place);
  return hyper;
}

}  // namespace

CudaKernel LowerSgdUpdate(const CudaOp& op) {
  const UpdateOp u(op.node());
  return Plain(
      [w = op.PlaceOf(u.w), dw = op.PlaceOf(u.dw), lr = op.PlaceOf(u.lr),
       to = op.Out(), n = op.n(), decay = op.attrs<SgdAttrs>().weight_decay,
       decay_at = u.hyper.empty() ? Place() : op.PlaceOf(u.hyper[0])](At at) {
        return cuda::SgdUpdate(F32(at, w), F32(at, dw), F32(at, lr),
                               HyperOf(at, decay, decay_at), F32(at, to), n);
      });
}

CudaKernel LowerMomentumUpdate(const CudaOp& op) {
  const UpdateOp u(op.node());
  const bool given = !u.hyper.empty();
  return Plain([w = op.PlaceOf(u.w), dw = op.PlaceOf(u.dw),
                v = op.PlaceOf(u.states[0]), lr = op.PlaceOf(u.lr),
                momentum_at = given ? op.PlaceOf(u.hyper[0]) : Place(),
                decay_at = given ? op.PlaceOf(u.hyper[1]) : Place(),
                attrs = op.attrs<MomentumAttrs>(), to = op.Out(),
                v_to = op.Out(1), n = op.n()](At at) {
    return cuda::MomentumUpdate(
        F32(at, w), F32(at, dw), F32(at, v), F32(at, lr),
        HyperOf(at, attrs.momentum, momentum_at), attrs.nesterov,
        HyperOf(at, attrs.weight_decay, decay_at), F32(at, to), F32(at, v_to),
        n);
  });
}

CudaKernel LowerAdamUpdate(const CudaOp& op) {
  const UpdateOp u(op.node());
  const AdamAttrs& attrs = op.attrs<AdamAttrs>();
  cuda::AdamParams params = {};
  params.beta1 = attrs.beta1;
  params.beta2 = attrs.beta2;
  params.epsilon = attrs.epsilon;
  params.weight_decay = attrs.weight_decay;
  params.decoupled = attrs.decoupled;
  params.n = op.n();
  return Plain([=, w = op.PlaceOf(u.w), dw = op.PlaceOf(u.dw),
                m = op.PlaceOf(u.states[0]), v = op.PlaceOf(u.states[1]),
                lr = op.PlaceOf(u.lr), step = op.PlaceOf(u.step),
                decay_at = u.hyper.empty() ? Place() : op.PlaceOf(u.hyper[0]),
                to = op.Out(), m_to = op.Out(1), v_to = op.Out(2)](At at) {
    cuda::AdamParams p = params;
    p.w = F32(at, w);
    p.dw = F32(at, dw);
    p.m = F32(at, m);
    p.v = F32(at, v);
    p.lr = F32(at, lr);
    p.step = F32(at, step);
    p.weight_decay.at = F32(at, decay_at);
    p.w_out = F32(at, to);
    p.m_out = F32(at, m_to);
    p.v_out = F32(at, v_to);
    return cuda::AdamUpdate(p);
  });
}

}  // namespace onestep::gpu
