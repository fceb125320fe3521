// SPDX-License-Identifier: Apache-2.0
// Where values are over W workers, and the ways to compute a node from the
// parts that each worker holds. The rules are in ops/<family>.cc.
#ifndef ONESTEP_COMPILER_IR_PLACEMENT_H_
#define ONESTEP_COMPILER_IR_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/attrs.h"
#include "runtime/base/types.h"

namespace onestep {

struct Node;

// Where a value is over W workers.
//   replicated  every worker holds the whole value
//   split       workers hold consecutive ranges of it along `axis`, in order,
//               of any sizes from 1
//   partial     every worker holds a tensor of its shape, and it is their sum;
//               of a replicated value one worker keeps it, the others hold 0
//   models      workers hold consecutive ranges of its models, in order
struct Placement {
  enum Kind : uint8_t { kReplicated, kSplit, kPartial, kModels };
  Kind kind = kReplicated;
  int axis = 0;  // of kSplit, else 0

  static Placement Replicated() { return {}; }
  static Placement Split(int axis) { return {kSplit, axis}; }
  static Placement Partial() { return {kPartial, 0}; }
  static Placement Models() { return {kModels, 0}; }

  bool IsSplit(int along) const { return kind == kSplit && axis == along; }
  // "replicated", "split(0)", "partial", "models".
  std::string ToString() const;

  friend bool operator==(const Placement&, const Placement&) = default;
};

// A half-open range of an axis.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};
// The range of an axis of `size` that is worker w's.
Range RangeOf(int64_t size, int workers, int worker);

// Where a range of an axis lies in a dense tensor, in elements: `outer` runs of
// `run` elements, the first at `begin`, each `stride` after the one before.
struct AxisRuns {
  int64_t outer, run, stride, begin;
};
// Models are the innermost axis: axis `type.rank()` is theirs.
AxisRuns RunsOf(const TensorType& type, int64_t axis, Range range);
// All of the tensor, as one run.
AxisRuns AllOf(const TensorType& type);

// One way to compute a node on every worker from its part of the operands: each
// runs the same op on what it holds and gets its part of the results. The axes
// that are split are all of one size and are cut at the same places.
struct Strategy {
  std::vector<Placement> operands, results;  // one per operand or result

  // "(split(0), replicated) -> split(0)".
  std::string ToString() const;

  friend bool operator==(const Strategy&, const Strategy&) = default;
};

// Every useful strategy of a node; the first is all replicated. That the axes
// it splits are as long as there are workers is for the caller to see to.
using PartitionFn = std::vector<Strategy> (*)(const Node& node);

// Where a value is when models are spread over the workers: models never meet,
// so that none waits for another.
Placement ByModels(const TensorType& type);
// The way to compute a node there.
Strategy ByModels(const Node& node);

// The attributes of `node` on a worker whose part of its results, under
// `strategy`, has these types: the rows or models that a broadcast makes, and
// the batch's rows for a mean over a part of them (kept when they are set, so
// that parts may be cut again). REQUIRES: one type per result, of the result's
// rank.
Attrs LocalAttrs(const Node& node, const Strategy& strategy,
                 const std::vector<TensorType>& local_results);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_IR_PLACEMENT_H_
