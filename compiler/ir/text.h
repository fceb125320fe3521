// SPDX-License-Identifier: Apache-2.0
// The text form of a graph; printing and parsing give the same graph back.
//
//   graph {
//     %images = input u8[60000,784]
//     %indices = input i32[32]
//     %w1 = param f32[784,128]
//     %0 = gather_rows(%images, %indices) : u8[32,784] @forward
//     %1 = cast(%0) : f32[32,784] @forward
//     %2 = matmul(%1, %w1) : f32[32,128] @forward
//     ...
//     %9:3 = loss_grad(%8, %labels) {scaled=true} : f32[], f32[32,10],
//         f32[] @loss                                (on one line)
//     update w1 = %12
//     result loss = %9#0
//   }
//
// Values of inputs and params are printed by name, others by number. Fields
// that have their default value are left out. `# ...` is a comment.
#ifndef ONESTEP_COMPILER_IR_TEXT_H_
#define ONESTEP_COMPILER_IR_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/graph.h"

namespace onestep {

struct PrintOptions {
  bool fused_from = false;  // as a trailing comment
};

std::string PrintGraph(const Graph& graph, const PrintOptions& options = {});

// InvalidArgument names the line: "line 3: want ..., got ...". The result is
// verified.
absl::StatusOr<Graph> ParseGraph(absl::string_view text);

// "{trans_a=true, activation=relu}" or "" when all fields are the default.
std::string PrintAttrs(OpKind kind, const Attrs& attrs);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_TEXT_H_
