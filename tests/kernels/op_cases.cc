// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/op_cases.h"

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/ir/text.h"
#include "runtime/base/status.h"
#include "tests/run_chain.h"

namespace onestep {
namespace {

using Dims = std::vector<int64_t>;

TensorType U8(Dims dims) { return {DType::kU8, std::move(dims)}; }
TensorType I32(Dims dims) { return {DType::kI32, std::move(dims)}; }

// Builds one case: leaves with values, then the op over them.
class Builder {
 public:
  Builder(OpKind op, std::function<void(const OpCase&)> fn)
      : fn_(std::move(fn)), rng_(17) {
    case_.op = op;
  }

  // Normal values.
  Value Float(Dims dims) { return Leaf(F32(std::move(dims)), Normal()); }
  // Param of normal values; `positive`: squares, as of second moments.
  Value Param(Dims dims, bool positive = false) {
    const Value v = Leaf(F32(std::move(dims)), Normal(), true);
    if (positive) {
      for (double& x : case_.bindings[v.node->name()]) x *= x;
    }
    return v;
  }
  // Values between 0 and 1, as of probabilities and sigmoids.
  Value Unit(Dims dims) {
    return Leaf(F32(std::move(dims)), Uniform(0.05, 0.95));
  }
  Value Scalar(double value) {
    const Value v = Leaf(F32({}), Normal());
    case_.bindings[v.node->name()] = {value};
    return v;
  }
  Value Bytes(Dims dims) { return Leaf(U8(std::move(dims)), Integers(255)); }
  // Indices or labels below `bound`.
  Value Below(int64_t n, int64_t bound) {
    return Leaf(I32({n}), Integers(bound - 1));
  }

  // A sparse batch of `batch` rows out of `rows`, a third of whose bytes are
  // not zero.
  Value Sparse(int64_t batch, int64_t rows, int64_t cols) {
    const Value table = Bytes({rows, cols});
    for (double& byte : case_.bindings[table.node->name()]) {
      if (rng_() % 3 != 0) byte = 0;
    }
    return case_.graph.Add(OpKind::kGatherSparse, {table, Below(batch, rows)},
                           GatherSparseAttrs{1.0f / 255});
  }

  // The sparse batch leaves as its product with the unit matrix: dense.
  void RunToDense(Value x, int64_t cols) {
    Graph& g = case_.graph;
    const Value unit = Leaf(F32({cols, cols}), Normal());
    std::vector<double>& w = case_.bindings[unit.node->name()];
    for (int64_t i = 0; i < cols * cols; ++i) w[i] = i % (cols + 1) == 0;
    case_.name = absl::StrCat(x.node->def().name, " ", x.type().ToString());
    g.AddResult("y0", g.Add(OpKind::kSparseMatMul, {x, unit}));
    CHECK(g.Verify().ok());
    fn_(case_);
  }

  void Run(std::vector<Value> operands, Attrs attrs) {
    Graph& g = case_.graph;
    const Value first = g.Add(case_.op, std::move(operands), std::move(attrs));
    case_.name = first.node->def().name;
    absl::StrAppend(&case_.name, " ", PrintAttrs(case_.op, first.node->attrs));
    for (const Value& v : first.node->operands) {
      absl::StrAppend(&case_.name, " ", v.type().ToString());
    }
    for (int i = 0; i < std::ssize(first.node->types); ++i) {
      Value y = first.node->result(i);
      // Integers leave as floats.
      if (y.type().dtype != DType::kF32) y = g.Add(OpKind::kCast, {y});
      g.AddResult(absl::StrCat("y", i), y);
    }
    case_.bindings = RoundToLeaves(g, case_.bindings);
    CHECK(g.Verify().ok());
    fn_(case_);
  }
  void Run(std::vector<Value> operands) {
    Run(std::move(operands), GetOpDef(case_.op).default_attrs);
  }

  // The op's last results become the new values of these params.
  void RunUpdate(std::vector<Value> operands, const std::vector<Value>& params,
                 Attrs attrs) {
    Graph& g = case_.graph;
    const Value first = g.Add(case_.op, std::move(operands), std::move(attrs));
    case_.name = absl::StrCat(first.node->def().name, " ",
                              PrintAttrs(case_.op, first.node->attrs), " ",
                              params[0].type().ToString());
    const int others = static_cast<int>(first.node->types.size()) -
                       static_cast<int>(params.size());
    for (int i = 0; i < others; ++i) {
      g.AddResult(absl::StrCat("y", i), first.node->result(i));
    }
    for (int i = 0; i < std::ssize(params); ++i) {
      g.AddUpdate(params[i], first.node->result(others + i));
    }
    case_.bindings = RoundToLeaves(g, case_.bindings);
    CHECK(g.Verify().ok());
    fn_(case_);
  }

 private:
  using Draw = std::function<double()>;
  Draw Normal() {
    return [this] { return std::normal_distribution<double>()(rng_); };
  }
  Draw Uniform(double low, double high) {
    return [=, this] {
      return std::uniform_real_distribution<double>(low, high)(rng_);
    };
  }
  Draw Integers(int64_t max) {
    return [=, this] {
      return std::uniform_int_distribution<int64_t>(0, max)(rng_);
    };
  }

  Value Leaf(TensorType type, const Draw& draw, bool param = false) {
    const std::string name = absl::StrCat("x", case_.bindings.size());
    std::vector<double> values(type.num_elements());
    for (double& v : values) v = draw();
    case_.bindings[name] = std::move(values);
    return param ? case_.graph.AddParam(name, std::move(type))
                 : case_.graph.AddInput(name, std::move(type));
  }

  std::function<void(const OpCase&)> fn_;
  std::mt19937 rng_;
  OpCase case_;
};

// A step of a window over tables of rows x cols and of one row more, with `k`
// contexts; in place or not.
void WindowCase(Builder b, OpKind op, int64_t rows, int64_t cols, int64_t k,
                bool in_place) {
  const bool cbow = op == OpKind::kCbowWindow;
  const bool labels = op == OpKind::kHsWindow || (cbow && k % 2 == 0);
  const int64_t n = 1 + (rows + k) % 6;
  const auto table = [&](Dims dims) {
    return in_place ? b.Param(dims) : b.Float(dims);
  };
  std::vector<Value> operands = {table({rows, cols}), table({rows + 1, cols}),
                                 b.Below(k, rows)};
  operands.push_back(cbow ? b.Unit({1, k}) : b.Unit({k}));
  if (cbow) operands.push_back(b.Unit({1, k}));
  operands.push_back(b.Below(n, rows + 1));
  operands.push_back(b.Unit({1, n}));
  if (labels) operands.push_back(b.Unit({1, n}));
  operands.push_back(b.Scalar(0.1));
  Attrs attrs = NoAttrs();
  if (op != OpKind::kHsWindow) {
    attrs = PositivesAttrs{labels ? 0 : std::min<int64_t>(n, 2)};
  }
  if (!in_place) return b.Run(operands, attrs);
  b.RunUpdate(operands, {operands[0], operands[1]}, attrs);
}

// The cases of one op at rows x cols (and k where a third size is needed).
void Cases(OpKind op, int64_t rows, int64_t cols, int64_t k,
           const std::function<void(const OpCase&)>& fn) {
  const auto make = [&] { return Builder(op, fn); };
  switch (op) {
    case OpKind::kInput:
    case OpKind::kParam:
      return;  // leaves compute nothing
    case OpKind::kConstant:
      return;  // covered by its own test: it has no operand
    case OpKind::kGatherRows: {
      Builder b = make();
      b.Run({b.Bytes({rows, cols}), b.Below(k, rows)});
      Builder c = make();
      c.Run({c.Below(rows, cols), c.Below(k, rows)});
      Builder d = make();
      d.Run({d.Float({rows, cols}), d.Below(k, rows)});
      return;
    }
    case OpKind::kScatterAdd: {
      Builder b = make();
      const Value table = b.Param({rows, cols});
      b.RunUpdate({table, b.Below(k, rows), b.Float({k, cols})}, {table},
                  NoAttrs{});
      Builder c = make();  // not in place
      c.Run({c.Float({rows, cols}), c.Below(k, rows), c.Float({k, cols})});
      Builder d = make();
      d.Run({d.Float({rows}), d.Below(k, rows), d.Float({k})});
      return;
    }
    case OpKind::kBroadcastModels:
      return;  // of one model it is nothing; lowered graphs of many have tests
    case OpKind::kExchange:
      return;  // no backend of one process's graph runs it
    case OpKind::kSlice: {
      const SliceAttrs by_rows{0, rows / 3, rows - rows / 2};
      const SliceAttrs by_cols{1, cols / 3, cols - cols / 2};
      for (const SliceAttrs& a : {by_rows, by_cols}) {
        Builder b = make();
        b.Run({b.Float({rows, cols})}, a);
        Builder c = make();
        c.Run({c.Bytes({rows, cols})}, a);
      }
      Builder d = make();
      d.Run({d.Below(rows, 1000)}, by_rows);
      Builder e = make();
      e.Run({e.Float({rows})}, by_rows);
      return;
    }
    case OpKind::kCast: {
      Builder b = make();
      b.Run({b.Bytes({rows, cols})});
      Builder c = make();
      c.Run({c.Below(rows, 1000)});
      return;
    }
    case OpKind::kOneHot: {
      Builder b = make();
      b.Run({b.Below(rows, cols)}, OneHotAttrs{cols});
      return;
    }
    case OpKind::kScale: {
      Builder b = make();
      b.Run({b.Float({rows, cols})}, ScaleAttrs{-0.3f});
      return;
    }
    case OpKind::kMulScalar: {
      Builder b = make();
      b.Run({b.Float({rows, cols}), b.Scalar(0.7)}, ScaleAttrs{-1.5f});
      return;
    }
    case OpKind::kAdd:
    case OpKind::kMul:
    case OpKind::kReluGrad:
    case OpKind::kGeluGrad: {
      Builder b = make();
      b.Run({b.Float({rows, cols}), b.Float({rows, cols})});
      return;
    }
    case OpKind::kTanhGrad:
    case OpKind::kSigmoidGrad:
    case OpKind::kSoftmaxGrad: {
      Builder b = make();
      b.Run({b.Unit({rows, cols}), b.Float({rows, cols})});
      return;
    }
    case OpKind::kMatMul:
      for (int bits = 0; bits < 16; ++bits) {
        MatMulAttrs a;
        a.trans_a = bits & 1;
        a.trans_b = bits & 2;
        a.bias = bits & 4;
        a.accumulate = (bits & 8) && !a.bias;
        if (a.bias) {
          a.activation = static_cast<Activation>((rows + cols + bits) % 5);
        }
        Builder b = make();
        std::vector<Value> operands = {
            b.Float(a.trans_a ? Dims{k, rows} : Dims{rows, k}),
            b.Float(a.trans_b ? Dims{cols, k} : Dims{k, cols})};
        if (a.bias) operands.push_back(b.Float({cols}));
        if (!a.accumulate) {
          b.Run(operands, a);
          continue;
        }
        const Value c = b.Param({rows, cols});
        operands.push_back(c);
        b.RunUpdate(operands, {c}, a);
      }
      return;
    case OpKind::kBlockMatMul:
      for (int bits = 0; bits < 8; ++bits) {
        const BlockMatMulAttrs a{bits & 4 ? 3 : 1, (bits & 1) != 0,
                                 (bits & 2) != 0};
        Builder b = make();
        b.Run({b.Float(a.trans_a ? Dims{a.blocks * k, rows}
                                 : Dims{a.blocks * rows, k}),
               b.Float(a.trans_b ? Dims{a.blocks * cols, k}
                                 : Dims{a.blocks * k, cols})},
              a);
      }
      return;
    case OpKind::kSigmoidBce:
    case OpKind::kSigmoidBceGrad:
      for (int64_t blocks : {1, 2}) {
        for (bool labels : {false, true}) {
          Builder b = make();
          std::vector<Value> operands = {b.Float({blocks * rows, cols}),
                                         b.Unit({blocks * rows}),
                                         b.Unit({blocks, cols})};
          if (labels) operands.push_back(b.Unit({blocks, cols}));
          b.Run(operands, PositivesAttrs{labels ? 0 : cols / 2});
        }
      }
      return;
    case OpKind::kSgnsWindow:
    case OpKind::kHsWindow:
    case OpKind::kCbowWindow:
      for (bool in_place : {false, true}) {
        WindowCase(make(), op, rows, cols, k, in_place);
      }
      return;
    case OpKind::kAddBias: {
      Builder b = make();
      b.Run({b.Float({rows, cols}), b.Float({cols})});
      return;
    }
    case OpKind::kBroadcastRows: {
      Builder b = make();
      b.Run({b.Float({cols})}, RowsAttrs{rows});
      return;
    }
    case OpKind::kReduceRows:
    case OpKind::kRelu:
    case OpKind::kTanh:
    case OpKind::kSigmoid:
    case OpKind::kGelu:
    case OpKind::kSoftmax: {
      Builder b = make();
      b.Run({b.Float({rows, cols})});
      return;
    }
    case OpKind::kNllLoss:
      for (int64_t batch : {int64_t{0}, 2 * rows}) {
        Builder b = make();
        b.Run({b.Float({rows, cols}), b.Below(rows, cols)}, MeanAttrs{batch});
      }
      return;
    case OpKind::kMinusOneHot:
    case OpKind::kCountCorrect: {
      Builder b = make();
      b.Run({b.Float({rows, cols}), b.Below(rows, cols)});
      return;
    }
    case OpKind::kMseLoss:
    case OpKind::kMseGrad:
      for (int64_t batch : {int64_t{0}, 2 * rows}) {
        Builder b = make();
        b.Run({b.Float({rows, cols}), b.Unit({rows, cols})}, MeanAttrs{batch});
        Builder c = make();
        c.Run({c.Float({rows}), c.Unit({rows})}, MeanAttrs{batch});
      }
      return;
    case OpKind::kSgdUpdate:
      for (float decay : {0.0f, 0.01f}) {
        Builder b = make();
        const Value w = b.Param({rows, cols});
        b.RunUpdate({w, b.Float({rows, cols}), b.Scalar(0.1)}, {w},
                    SgdAttrs{decay});
        Builder c = make();  // not in place
        c.Run({c.Float({rows, cols}), c.Float({rows, cols}), c.Scalar(0.1)},
              SgdAttrs{decay});
      }
      return;
    case OpKind::kMomentumUpdate:
      for (bool nesterov : {false, true}) {
        Builder b = make();
        const Value w = b.Param({rows, cols}), v = b.Param({rows, cols});
        b.RunUpdate({w, b.Float({rows, cols}), v, b.Scalar(0.1)}, {w, v},
                    MomentumAttrs{0.9f, nesterov, nesterov ? 0.01f : 0.0f});
      }
      return;
    case OpKind::kAdamUpdate:
      for (bool decoupled : {false, true}) {
        Builder b = make();
        const Value w = b.Param({rows, cols}), m = b.Param({rows, cols});
        const Value v = b.Param({rows, cols}, /*positive=*/true);
        AdamAttrs a;
        a.weight_decay = 0.01f;
        a.decoupled = decoupled;
        b.RunUpdate({w, b.Float({rows, cols}), m, v, b.Scalar(0.01),
                     b.Scalar(decoupled ? 1 : 100)},
                    {w, m, v}, a);
      }
      return;
    case OpKind::kGatherConvert: {
      Builder b = make();
      b.Run({b.Bytes({rows, cols}), b.Below(k, rows)}, ScaleAttrs{1.0f / 255});
      return;
    }
    case OpKind::kLossGrad:
      for (int bits = 0; bits < 24; ++bits) {
        LossGradAttrs a;
        a.loss = bits & 1 ? Loss::kMse : Loss::kSoftmaxXent;
        a.gather = bits & 2;
        a.scaled = bits & 4;
        a.bias = static_cast<BiasGrad>(bits / 8);
        if (bits % 3 == 0) a.rows = rows + 3;
        Builder b = make();
        std::vector<Value> operands = {b.Float({rows, cols}),
                                       b.Below(a.gather ? k : rows, cols)};
        if (a.gather) operands.push_back(b.Below(rows, k));
        if (a.scaled) operands.push_back(b.Scalar(0.1));
        if (a.bias == BiasGrad::kUpdate) operands.push_back(b.Float({cols}));
        b.Run(operands, a);
      }
      return;
    case OpKind::kActivationGrad:
      for (int bits = 0; bits < 12; ++bits) {
        ActivationGradAttrs a;
        a.activation = static_cast<Activation>(1 + bits % 4);
        a.bias = static_cast<BiasGrad>(bits / 4);
        Builder b = make();
        std::vector<Value> operands = {b.Unit({rows, cols}),
                                       b.Float({rows, cols})};
        if (a.bias == BiasGrad::kUpdate) operands.push_back(b.Float({cols}));
        b.Run(operands, a);
      }
      return;
    case OpKind::kGatherSparse: {
      Builder b = make();
      b.RunToDense(b.Sparse(k, rows, cols), cols);
      return;
    }
    case OpKind::kSparseMatMul:
      for (bool bias : {false, true}) {
        SparseMatMulAttrs a;
        a.bias = bias;
        a.activation = static_cast<Activation>((rows + cols + k + bias) % 5);
        Builder b = make();
        std::vector<Value> operands = {b.Sparse(rows, 5, k),
                                       b.Float({k, cols})};
        if (bias) operands.push_back(b.Float({cols}));
        b.Run(operands, a);
      }
      return;
    case OpKind::kSparseOuter: {
      Builder b = make();
      b.Run({b.Sparse(k, 5, rows), b.Float({k, cols})},
            SparseOuterAttrs{rows, false});
      Builder c = make();
      const Value x = c.Sparse(k, 5, rows), dz = c.Float({k, cols});
      const Value dw = c.Param({rows, cols});
      c.RunUpdate({x, dz, dw}, {dw}, SparseOuterAttrs{rows, true});
      return;
    }
  }
}

}  // namespace

bool HasGpuKernel(OpKind op) {
  switch (op) {
    case OpKind::kGatherSparse:
    case OpKind::kSparseMatMul:
    case OpKind::kSparseOuter:
    case OpKind::kScatterAdd:
    case OpKind::kBlockMatMul:
    case OpKind::kSigmoidBce:
    case OpKind::kSigmoidBceGrad:
    case OpKind::kSgnsWindow:
    case OpKind::kHsWindow:
    case OpKind::kCbowWindow:
      return false;
    default:
      return true;
  }
}

void ForEachOpCase(const std::function<void(const OpCase&)>& fn) {
  for (const OpDef& def : AllOps()) {
    // Pairs of sizes that together cover every size as rows and as columns.
    for (size_t i = 0; i < kOddSizes.size(); ++i) {
      for (size_t step : {0, 2, 5}) {
        const size_t n = kOddSizes.size();
        Cases(def.kind, kOddSizes[i], kOddSizes[(i + step) % n],
              kOddSizes[(i + 2 * step + 1) % n], fn);
      }
    }
  }
}

}  // namespace onestep
