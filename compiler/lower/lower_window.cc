// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "compiler/lower/loop_lowering.h"
#include "kernels/reference.h"

namespace onestep {
namespace {

using Tensor = std::vector<double>;

Tensor Doubles(const float* x, int64_t n) { return Tensor(x, x + n); }

// The rows of a table that a step names, each once: a table of their own.
struct NamedRows {
  NamedRows(const float* from, const int32_t* rows, int64_t n, int64_t cols)
      : rows(rows), n(n), cols(cols), table(n * cols), names(n) {
    for (int64_t i = 0; i < n; ++i) {
      names[i] = std::find(rows, rows + i, rows[i]) - rows;
      std::copy_n(from + rows[i] * cols, cols, table.data() + i * cols);
    }
  }
  void Put(float* to) const {
    for (int64_t i = 0; i < n; ++i) {
      if (names[i] != static_cast<double>(i)) continue;
      std::copy_n(table.data() + i * cols, cols, to + rows[i] * cols);
    }
  }
  const int32_t* rows;
  int64_t n, cols;
  Tensor table, names;
};

}  // namespace

absl::StatusOr<LoweredStep> LowerWindow(const LowerContext& context,
                                        Node& node) {
  const auto in = [&](int i) {
    return context.Address<float>(node.operands[i]);
  };
  const auto size = [&](int i) {
    return node.operands[i].type().num_elements();
  };
  const bool cbow = node.kind == OpKind::kCbowWindow;
  const int outputs = cbow ? 5 : 4;
  const int last = static_cast<int>(node.operands.size()) - 1;
  reference::WindowArgs shape = {};
  shape.cols = node.types[1].dims[1];
  shape.num_contexts = shape.in_rows = size(2);
  shape.num_outputs = shape.out_rows = size(outputs);
  const bool labels = last == outputs + 3;
  if (!labels) shape.positives = node.as<PositivesAttrs>().positives;
  LoweredStep step;
  step.implementation = "reference";
  step.call =
      [=, table_in = in(0), table_out = in(1), mask = in(3), spread = in(4),
       weights = in(outputs + 1), y = labels ? in(outputs + 2) : nullptr,
       lr = in(last), contexts = context.Address<int32_t>(node.operands[2]),
       names = context.Address<int32_t>(node.operands[outputs]),
       loss = context.Address<float>(node.result(0)),
       new_in = context.Address<float>(node.result(1)),
       new_out = context.Address<float>(node.result(2)),
       in_bytes = node.types[1].bytes(), out_bytes = node.types[2].bytes()] {
        const int64_t c = shape.num_contexts, n = shape.num_outputs;
        NamedRows x(*table_in, *contexts, c, shape.cols);
        NamedRows o(*table_out, *names, n, shape.cols);
        if (*new_in != *table_in) std::memcpy(*new_in, *table_in, in_bytes);
        if (*new_out != *table_out)
          std::memcpy(*new_out, *table_out, out_bytes);
        const Tensor m = Doubles(*mask, c), w = Doubles(*weights, n);
        const Tensor s = cbow ? Doubles(*spread, c) : Tensor();
        const Tensor labels_of = y != nullptr ? Doubles(*y, n) : Tensor();
        reference::WindowArgs args = shape;
        args.in = x.table.data();
        args.out = o.table.data();
        args.contexts = x.names.data();
        args.outputs = o.names.data();
        (cbow ? args.mean : args.mask) = m.data();
        args.spread = s.data();
        args.weights = w.data();
        if (y != nullptr) args.labels = labels_of.data();
        args.lr = **lr;
        **loss = static_cast<float>(
            reference::Window(args, x.table.data(), o.table.data()));
        x.Put(*new_in);
        o.Put(*new_out);
      };
  return step;
}

}  // namespace onestep
