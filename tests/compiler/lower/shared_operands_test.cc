// SPDX-License-Identifier: Apache-2.0
// Random graphs in which operands are shared every way the types allow: a
// value twice in one op, params that several updates read, updates that swap.
// Values are small integers and powers of two, so that every order of fp32
// arithmetic is exact and a wrong alias shows as a wrong number.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "tests/compiler/passes/random_mlp.h"
#include "tests/run_chain.h"
#include "tests/status_matchers.h"

namespace onestep {
namespace {

constexpr int kGraphs = 1500;
constexpr int kSteps = 3;
constexpr double kLargest = 1 << 20;  // beyond, fp32 may round

class Soup {
 public:
  explicit Soup(uint64_t seed) : random_(seed) {}

  void Make() {
    n_ = int64_t{1} << random_.Below(4);
    for (int i = 0; i < 3; ++i) {
      for (const TensorType& type : {F32({n_, n_}), F32({n_}), F32({})}) {
        AddLeaf(i < 2, type);
      }
    }
    labels_ = graph_.AddInput("labels", {DType::kI32, {n_}});
    for (int64_t i = 0; i < n_; ++i) {
      bindings_["labels"].push_back(static_cast<double>(random_.Below(n_)));
    }
    if (random_.OneIn(3)) Keep(graph_.AddConstant(0.5f, F32({})).node);
    for (int64_t ops = 2 + random_.Below(14); ops > 0; --ops) AddOp();
    for (const Value param : params_) {
      if (random_.OneIn(3)) continue;
      Value value = Pick(param.type());
      if (random_.OneIn(3)) value = graph_.Add(OpKind::kAdd, {param, value});
      graph_.AddUpdate(param, value);
      if (random_.OneIn(4)) AddOp();
    }
    for (int64_t i = random_.Below(4); i > 0; --i) {
      graph_.AddResult(absl::StrCat("result", i), Pick(AnyType()));
    }
  }

  const Graph& graph() const { return graph_; }
  const TensorMap& bindings() const { return bindings_; }

 private:
  void AddLeaf(bool param, const TensorType& type) {
    const std::string name = absl::StrCat(param ? "p" : "x", graph_.size());
    const Value leaf =
        param ? graph_.AddParam(name, type) : graph_.AddInput(name, type);
    if (param) params_.push_back(leaf);
    for (int64_t i = 0; i < type.num_elements(); ++i) {
      bindings_[name].push_back(static_cast<double>(random_.Below(7) - 3));
    }
    Keep(leaf.node);
  }

  void Keep(Node* node) {
    for (int i = 0; i < static_cast<int>(node->types.size()); ++i) {
      pool_[node->types[i].rank()].push_back(node->result(i));
    }
  }

  TensorType AnyType() {
    switch (random_.Below(4)) {
      case 0:
        return F32({});
      case 1:
        return F32({n_});
      default:
        return F32({n_, n_});
    }
  }

  // A recent value as often as any.
  Value Pick(const TensorType& type) {
    const std::vector<Value>& values = pool_[type.rank()];
    const int64_t size = std::ssize(values);
    return values[random_.OneIn(2)
                      ? size - 1 - random_.Below(std::min<int64_t>(3, size))
                      : random_.Below(size)];
  }
  Value Matrix() { return Pick(F32({n_, n_})); }
  Value Vector() { return Pick(F32({n_})); }
  Value Scalar() { return Pick(F32({})); }

  void Op(OpKind kind, std::vector<Value> operands, Attrs attrs) {
    absl::StatusOr<Node*> node =
        graph_.AddNode(kind, std::move(operands), std::move(attrs));
    ASSERT_OK(node);
    Keep(*node);
  }
  void Op(OpKind kind, std::vector<Value> operands) {
    Op(kind, std::move(operands), GetOpDef(kind).default_attrs);
  }

  BiasGrad AnyBias(std::vector<Value>& operands) {
    const auto bias = static_cast<BiasGrad>(random_.Below(3));
    if (bias == BiasGrad::kUpdate) operands.push_back(Vector());
    return bias;
  }

  void AddMatMul() {
    MatMulAttrs a;
    a.trans_a = random_.OneIn(2);
    a.trans_b = random_.OneIn(2);
    std::vector<Value> operands = {Matrix(), Matrix()};
    a.accumulate = random_.OneIn(3);
    if (a.accumulate) {
      operands.push_back(random_.OneIn(3) ? operands[random_.Below(2)]
                                          : Matrix());
    } else {
      a.bias = random_.OneIn(2);
      if (a.bias) operands.push_back(Vector());
      if (random_.OneIn(2)) a.activation = Activation::kRelu;
    }
    Op(OpKind::kMatMul, operands, a);
  }

  void AddFusedGrad() {
    if (random_.OneIn(2)) {
      std::vector<Value> operands = {Matrix(), Matrix()};
      ActivationGradAttrs a;
      a.activation = Activation::kRelu;
      a.bias = AnyBias(operands);
      Op(OpKind::kActivationGrad, operands, a);
      return;
    }
    LossGradAttrs a;
    a.loss = Loss::kMse;
    a.gather = random_.OneIn(2);
    a.scaled = random_.OneIn(2);
    std::vector<Value> operands = {Matrix(), labels_};
    if (a.gather) operands.push_back(labels_);
    if (a.scaled) operands.push_back(Scalar());
    a.bias = AnyBias(operands);
    Op(OpKind::kLossGrad, operands, a);
  }

  void AddOp() {
    constexpr float kFactors[] = {1, -1, 0.5f, 2, -0.5f};
    const ScaleAttrs factor{kFactors[random_.Below(5)]};
    const TensorType t = AnyType();
    switch (random_.Below(17)) {
      case 0:
        return Op(OpKind::kScale, {Pick(t)}, factor);
      case 1:
        return Op(OpKind::kMulScalar, {Pick(t), Scalar()}, factor);
      case 2:
      case 3:
        return Op(OpKind::kAdd, {Pick(t), Pick(t)});
      case 4:
        return Op(OpKind::kMul, {Pick(t), Pick(t)});
      case 5:
      case 6:
        return AddMatMul();
      case 7:
        return Op(OpKind::kAddBias, {Matrix(), Vector()});
      case 8:
        return Op(OpKind::kReduceRows, {Matrix()});
      case 9:
        return Op(OpKind::kBroadcastRows, {Vector()}, RowsAttrs{n_});
      case 10:
        return Op(OpKind::kActivation, {Pick(t)},
                  ActivationAttrs{Activation::kRelu});
      case 11:
        return Op(OpKind::kActivationGrad, {Pick(t), Pick(t)},
                  ActivationGradAttrs{Activation::kRelu});
      case 12:
        return AddFusedGrad();
      case 13:
        return Op(OpKind::kSgdUpdate, {Pick(t), Pick(t), Scalar()},
                  SgdAttrs{random_.OneIn(2) ? 0.5f : 0.0f});
      case 14:
        return Op(OpKind::kMomentumUpdate,
                  {Pick(t), Pick(t), Pick(t), Scalar()},
                  MomentumAttrs{0.5f, random_.OneIn(2), 0.5f});
      case 15:
        return Op(OpKind::kMseGrad, {Pick(t), Pick(t)});
      default:
        return Op(OpKind::kMinusOneHot, {Matrix(), labels_});
    }
  }

  MlpRandom random_;
  int64_t n_ = 1;
  Graph graph_;
  TensorMap bindings_;
  Value labels_;
  std::vector<Value> params_;
  std::map<int, std::vector<Value>> pool_;  // by rank
};

bool Exact(const TensorMap& values) {
  for (const auto& [name, v] : values) {
    for (double x : v) {
      if (!std::isfinite(x) || std::abs(x) > kLargest) return false;
    }
  }
  return true;
}

// Each step starts from the params of the oracle's step before.
void ExpectSteps(const Graph& graph, const Soup& soup, KernelChoice choice,
                 int threads) {
  TensorMap bindings = soup.bindings();
  for (int step = 0; step < kSteps; ++step) {
    ASSERT_OK_AND_ASSIGN(const TensorMap want,
                         Evaluate(soup.graph(), bindings));
    if (!Exact(want)) return;
    ASSERT_OK_AND_ASSIGN(const TensorMap got,
                         RunChain(graph, bindings, choice, threads));
    for (const auto& [name, values] : want) {
      for (size_t i = 0; i < values.size(); ++i) {
        // Intermediate values may round, though rarely and by little.
        ASSERT_NEAR(got.at(name)[i], values[i],
                    1e-5 * std::max(1.0, std::abs(values[i])))
            << name << "[" << i << "] step " << step << "\n"
            << PrintGraph(soup.graph()) << "as run\n"
            << PrintGraph(graph);
      }
    }
    for (const Output& out : soup.graph().outputs()) {
      if (out.kind == Output::kUpdate) bindings[out.name] = want.at(out.name);
    }
  }
}

TEST(SharedOperandsTest, EveryAliasThatIsPlannedIsLegal) {
  for (int seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    Soup soup(seed);
    soup.Make();
    ASSERT_OK(soup.graph().Verify());
    Graph graph = soup.graph().Clone();
    PipelineOptions options;
    options.fuse = seed % 2 == 0;
    options.check_reports = true;
    ASSERT_OK(RunPipeline(graph, options));
    const auto choice = static_cast<KernelChoice>(seed % 3);
    ExpectSteps(graph, soup, choice, seed % 5 == 0 ? 3 : 1);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace onestep
