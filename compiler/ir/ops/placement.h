// SPDX-License-Identifier: Apache-2.0
// What places a value: for many models, as a part of it, or at other workers.
#ifndef ONESTEP_COMPILER_IR_OPS_PLACEMENT_H_
#define ONESTEP_COMPILER_IR_OPS_PLACEMENT_H_

#include <cstdint>

#include "compiler/ir/fields.h"
#include "runtime/base/types.h"

namespace onestep {

struct Node;

struct ModelsAttrs {
  int64_t models = 0;
  ONESTEP_FIELDS(ModelsAttrs, models);
};

// The elements [begin, begin + size) along `axis`.
struct SliceAttrs {
  int64_t axis = 0;
  int64_t begin = 0;
  int64_t size = 0;
  ONESTEP_FIELDS(SliceAttrs, axis, begin, size);
};

// Exchange `index` of a program of `workers`, at its `barrier`: those of one
// barrier stand together. Each gives its x: a term of the
// sum when `from` is -1, else its range of axis `from`, which is `full` long.
// Each gets the whole value when `to` is -1, else [begin, begin + size) of its
// axis `to`.
struct ExchangeAttrs {
  int64_t index = 0;
  int64_t barrier = 0;
  int64_t workers = 0;
  int64_t from = -1;
  int64_t to = -1;
  int64_t full = 0;
  int64_t begin = 0;
  int64_t size = 0;
  ONESTEP_FIELDS(ExchangeAttrs, index, barrier, workers, from, to, full, begin,
                 size);
};

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_OPS_PLACEMENT_H_
