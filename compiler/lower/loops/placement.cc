// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/loops/loop_op.h"
#include "kernels/cpu/models/interleaved.h"
#include "kernels/cpu/rows.h"

namespace onestep::loops {

Implementations LowerSlice(const LoopOp& op) {
  return op.Loop([op] {
    const SliceAttrs& attrs = op.attrs<SliceAttrs>();
    const TensorType& type = op.node().operands[0].type();
    AxisRuns runs =
        RunsOf(type, attrs.axis, {attrs.begin, attrs.begin + attrs.size});
    const int64_t bytes = DTypeBytes(type.dtype);
    return op.ByRows(runs.outer, runs.run * bytes / 4,
                     [begin = runs.begin * bytes, stride = runs.stride * bytes,
                      run = runs.run * bytes, x = op.In<char>(0),
                      y = op.Out<char>()](int64_t b, int64_t e) {
                       cpu::CopyRows(*x + begin, stride, *y, run, b, e);
                     });
  });
}

Implementations LowerBroadcastModels(const LoopOp& op) {
  return op.Loop([op] {
    return [x = op.In(0), y = op.Out(),
            n = op.node().operands[0].type().num_elements(),
            models = op.models()] {
      cpu::InterleavedBroadcast(*x, *y, n, models);
    };
  });
}

}  // namespace onestep::loops
