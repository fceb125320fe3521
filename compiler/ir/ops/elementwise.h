// SPDX-License-Identifier: Apache-2.0
// Arithmetic element by element, and sums and broadcasts over rows.
#ifndef ONESTEP_COMPILER_IR_OPS_ELEMENTWISE_H_
#define ONESTEP_COMPILER_IR_OPS_ELEMENTWISE_H_

#include <cstdint>

#include "compiler/ir/fields.h"
#include "runtime/base/types.h"

namespace onestep {

struct CastAttrs {
  DType to = DType::kF32;
  ONESTEP_FIELDS(CastAttrs, to);
};

struct ScaleAttrs {
  float alpha = 1;
  ONESTEP_FIELDS(ScaleAttrs, alpha);
};

struct RowsAttrs {
  int64_t rows = 0;
  ONESTEP_FIELDS(RowsAttrs, rows);
};

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OPS_ELEMENTWISE_H_
