// SPDX-License-Identifier: Apache-2.0
// Rows of tables: gathered, converted, added to; and labels as rows.
#ifndef ONESTEP_COMPILER_IR_OPS_ROWS_H_
#define ONESTEP_COMPILER_IR_OPS_ROWS_H_

#include <cstdint>

#include "compiler/ir/fields.h"
#include "compiler/ir/value.h"

namespace onestep {

struct OneHotAttrs {
  int64_t classes = 0;
  ONESTEP_FIELDS(OneHotAttrs, classes);
};

// gather_rows, gather_convert and gather_sparse.
struct GatherOp {
  explicit GatherOp(const Node& node);

  Value table, indices;
};

struct ScatterAddOp {
  explicit ScatterAddOp(const Node& node);

  Value table, indices, rows;
};

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OPS_ROWS_H_
