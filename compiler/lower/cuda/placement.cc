// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_op.h"

namespace onestep {
namespace gpu {

// Models lie one behind another: the runs are those of one model.
CudaKernel LowerSlice(const CudaOp& op) {
  const SliceAttrs& attrs = op.attrs<SliceAttrs>();
  TensorType type = op.in_type(0);
  type.models = 0;
  const AxisRuns runs =
      RunsOf(type, attrs.axis, {attrs.begin, attrs.begin + attrs.size});
  const int64_t bytes = DTypeBytes(type.dtype);
  return Plain([=, x = op.In(0), y = op.Out()](At at) {
    auto from = Of<const char>(at, x);
    from.first += runs.begin * bytes;
    return cuda::SliceRows(from, Of<void>(at, y), runs.outer, runs.run * bytes,
                           runs.stride * bytes);
  });
}

CudaKernel LowerBroadcastModels(const CudaOp& op) {
  return Plain([x = op.In(0), y = op.Out(), n = op.n()](At at) {
    return cuda::Scale(F32(at, x), 1, F32(at, y), n);
  });
}

}  // namespace gpu

CudaKernel CopyKernel(int from, int to, int64_t bytes) {
  return gpu::Plain([=](const CudaBindings& at) {
    return cuda::SliceRows(at.at(from), at.at(to), 1, bytes, bytes);
  });
}

}  // namespace onestep
