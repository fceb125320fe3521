// SPDX-License-Identifier: Apache-2.0
// Helpers of the passes: queries about the users of a value, and replacement of
// several nodes by one. "Parts" are the nodes that a fused node replaces.
#ifndef ONESTEP_COMPILER_PASSES_REWRITE_H_
#define ONESTEP_COMPILER_PASSES_REWRITE_H_

#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/passes/pipeline.h"

namespace onestep {

// Whether `value` is a constant whose elements are all x.
bool IsConstant(Value value, float x);

// The user of `value` if it has exactly one use; nullptr when it has none or
// several, or is an output.
Node* OnlyUser(const Graph& graph, Value value);

// "second use of %6 by gelu_grad": describes a use of `value` other than the
// one by `user`. REQUIRES: there is one.
std::string SecondUse(const Graph& graph, Value value, const Node* user);

// Whether `node` is the only user of `value`, so that the node that computes
// `value` may be fused into it; else records a refusal with the second use.
bool IsOnlyFor(PassContext& context, Value value, const Node* node);

// The param that `node` reads and whose update is result 0 of `node`; nullptr
// when there is none.
Node* UpdatedParam(const Graph& graph, Node* node);

// The node that may overwrite the old value of `param`, or nullptr. Only for
// cost estimates: the memory plan decides what is legal.
const Node* InPlaceWriter(const Graph& graph, Node* param);

// The reason why an update op cannot be replaced by an addition.
std::string WhyNotAdded(const Graph& graph, const Node* update);

// Adds a node before `position` (nullptr: at the end) and records `parts` in
// its fused_from and origins. REQUIRES: the operands are valid for the op.
Node* AddFused(Graph& graph, const Node* position, Phase phase, OpKind kind,
               std::vector<Value> operands, Attrs attrs,
               const std::vector<Node*>& parts);

// Erases `parts`. REQUIRES: all users of their results are parts.
void EraseParts(Graph& graph, const std::vector<Node*>& parts);

// Replaces a chain of nodes, whose last part computes the result, by one node.
Node* FuseChain(Graph& graph, OpKind kind, std::vector<Value> operands,
                Attrs attrs, const std::vector<Node*>& parts);

// Calls rewrite(context, node) for all nodes, in rounds, until no call returns
// that it changed the graph. Keeps the refusals of the last round, so that the
// node numbers in them are those of the final graph. Returns whether the graph
// changed.
bool RewriteAll(PassContext& context, bool (*rewrite)(PassContext&, Node*));

}  // namespace onestep

#endif  // ONESTEP_COMPILER_PASSES_REWRITE_H_
