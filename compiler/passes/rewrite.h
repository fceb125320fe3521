// SPDX-License-Identifier: Apache-2.0
// What the passes share: who uses a value, and putting one node in the place
// of several.
#ifndef ONESTEP_COMPILER_PASSES_REWRITE_H_
#define ONESTEP_COMPILER_PASSES_REWRITE_H_

#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/passes/pipeline.h"

namespace onestep {

// Whether `value` is a constant filled with x.
bool IsConstant(Value value, float x);

// The node that alone uses `value`, and once; nullptr: none, several, or an
// output does too.
Node* OnlyUser(const Graph& graph, Value value);

// "second use of %6 by gelu_grad": a use of `value` other than the one by
// `user`. REQUIRES: there is one.
std::string SecondUse(const Graph& graph, Value value, const Node* user);

// Whether `node` alone uses `value`, and so may take in what makes it; else
// refuses with the second use.
bool IsOnlyFor(PassContext& context, Value value, const Node* node);

// The param that result 0 of `node` is the update of and that `node` reads;
// nullptr: none.
Node* UpdatedParam(const Graph& graph, Node* node);

// The node that may write over the old value of `param`, or nullptr. For cost
// only: the memory plan decides again what is legal.
const Node* InPlaceWriter(const Graph& graph, Node* param);

// Why an update op does not take its gradient by addition.
std::string WhyNotAdded(const Graph& graph, const Node* update);

// Adds a node before `position` (nullptr: at the end) that says in fused_from
// and origins that it stands for `parts`. REQUIRES: the operands fit.
Node* AddFused(Graph& graph, const Node* position, Phase phase, OpKind kind,
               std::vector<Value> operands, Attrs attrs,
               const std::vector<Node*>& parts);

// Erases `parts`. REQUIRES: only parts use their results.
void EraseParts(Graph& graph, const std::vector<Node*>& parts);

// Puts a node in the place of a chain whose last part makes the result.
Node* FuseChain(Graph& graph, OpKind kind, std::vector<Value> operands,
                Attrs attrs, const std::vector<Node*>& parts);

// Calls rewrite(context, node), which says whether it changed the graph, for
// all nodes until none does. The refusals kept are those of the last round,
// so that the numbers in them are those of the graph as it is left.
bool RewriteAll(PassContext& context, bool (*rewrite)(PassContext&, Node*));

}  // namespace onestep

#endif  // ONESTEP_COMPILER_PASSES_REWRITE_H_
