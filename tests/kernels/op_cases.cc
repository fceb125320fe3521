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
    case_.name = absl::StrCat(x.node->op(), " ", x.type().ToString());
    g.AddResult("y0", g.Add(OpKind::kSparseMatMul, {x, unit}));
    CHECK(g.Verify().ok());
    fn_(case_);
  }

  void Run(std::vector<Value> operands, Attrs attrs) {
    Graph& g = case_.graph;
    const Value first = g.Add(case_.op, std::move(operands), std::move(attrs));
    case_.name = first.node->op();
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
    case_.name = absl::StrCat(first.node->op(), " ",
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
  const bool labels = k % 2 == 0;
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
  const PositivesAttrs attrs{labels ? 0 : std::min<int64_t>(n, 2)};
  if (!in_place) return b.Run(operands, attrs);
  b.RunUpdate(operands, {operands[0], operands[1]}, attrs);
}

struct Sizes {
  const std::function<void(const OpCase&)>& fn;
  OpKind op;
  int64_t rows, cols, k;  // k: where a third size is needed
  Builder make() const { return Builder(op, fn); }
};

// Leaves compute nothing.
void CasesInput(const Sizes&) {}
constexpr auto CasesParam = CasesInput;

// It has no operand and a test of its own.
void CasesConstant(const Sizes&) {}

void CasesGatherRows(const Sizes& s) {
  Builder b = s.make();
  b.Run({b.Bytes({s.rows, s.cols}), b.Below(s.k, s.rows)});
  Builder c = s.make();
  c.Run({c.Below(s.rows, s.cols), c.Below(s.k, s.rows)});
  Builder d = s.make();
  d.Run({d.Float({s.rows, s.cols}), d.Below(s.k, s.rows)});
}

void CasesScatterAdd(const Sizes& s) {
  Builder b = s.make();
  const Value table = b.Param({s.rows, s.cols});
  b.RunUpdate({table, b.Below(s.k, s.rows), b.Float({s.k, s.cols})}, {table},
              NoAttrs{});
  Builder c = s.make();  // not in place
  c.Run({c.Float({s.rows, s.cols}), c.Below(s.k, s.rows),
         c.Float({s.k, s.cols})});
  Builder d = s.make();
  d.Run({d.Float({s.rows}), d.Below(s.k, s.rows), d.Float({s.k})});
}

// Of one model it is nothing; graphs of many have tests of their own.
void CasesBroadcastModels(const Sizes&) {}

// Only workers run it.
void CasesExchange(const Sizes&) {}

void CasesSlice(const Sizes& s) {
  const SliceAttrs by_rows{0, s.rows / 3, s.rows - s.rows / 2};
  const SliceAttrs by_cols{1, s.cols / 3, s.cols - s.cols / 2};
  for (const SliceAttrs& a : {by_rows, by_cols}) {
    Builder b = s.make();
    b.Run({b.Float({s.rows, s.cols})}, a);
    Builder c = s.make();
    c.Run({c.Bytes({s.rows, s.cols})}, a);
  }
  Builder d = s.make();
  d.Run({d.Below(s.rows, 1000)}, by_rows);
  Builder e = s.make();
  e.Run({e.Float({s.rows})}, by_rows);
}

void CasesCast(const Sizes& s) {
  Builder b = s.make();
  b.Run({b.Bytes({s.rows, s.cols})});
  Builder c = s.make();
  c.Run({c.Below(s.rows, 1000)});
}

void CasesOneHot(const Sizes& s) {
  Builder b = s.make();
  b.Run({b.Below(s.rows, s.cols)}, OneHotAttrs{s.cols});
}

void CasesScale(const Sizes& s) {
  Builder b = s.make();
  b.Run({b.Float({s.rows, s.cols})}, ScaleAttrs{-0.3f});
}

void CasesMulScalar(const Sizes& s) {
  Builder b = s.make();
  b.Run({b.Float({s.rows, s.cols}), b.Scalar(0.7)}, ScaleAttrs{-1.5f});
}

void CasesAdd(const Sizes& s) {
  Builder b = s.make();
  b.Run({b.Float({s.rows, s.cols}), b.Float({s.rows, s.cols})});
}
constexpr auto CasesMul = CasesAdd;

void CasesSoftmaxGrad(const Sizes& s) {
  Builder b = s.make();
  b.Run({b.Unit({s.rows, s.cols}), b.Float({s.rows, s.cols})});
}

void CasesMatMul(const Sizes& s) {
  for (int bits = 0; bits < 16; ++bits) {
    MatMulAttrs a;
    a.trans_a = bits & 1;
    a.trans_b = bits & 2;
    a.bias = bits & 4;
    a.accumulate = (bits & 8) && !a.bias;
    if (a.bias) {
      a.activation = static_cast<Activation>((s.rows + s.cols + bits) % 5);
    }
    Builder b = s.make();
    std::vector<Value> operands = {
        b.Float(a.trans_a ? Dims{s.k, s.rows} : Dims{s.rows, s.k}),
        b.Float(a.trans_b ? Dims{s.cols, s.k} : Dims{s.k, s.cols})};
    if (a.bias) operands.push_back(b.Float({s.cols}));
    if (!a.accumulate) {
      b.Run(operands, a);
      continue;
    }
    const Value c = b.Param({s.rows, s.cols});
    operands.push_back(c);
    b.RunUpdate(operands, {c}, a);
  }
}

void CasesBlockMatMul(const Sizes& s) {
  for (int bits = 0; bits < 8; ++bits) {
    const BlockMatMulAttrs a{bits & 4 ? 3 : 1, (bits & 1) != 0,
                             (bits & 2) != 0};
    Builder b = s.make();
    b.Run({b.Float(a.trans_a ? Dims{a.blocks * s.k, s.rows}
                             : Dims{a.blocks * s.rows, s.k}),
           b.Float(a.trans_b ? Dims{a.blocks * s.cols, s.k}
                             : Dims{a.blocks * s.k, s.cols})},
          a);
  }
}

void CasesSigmoidBce(const Sizes& s) {
  for (int64_t blocks : {1, 2}) {
    for (bool labels : {false, true}) {
      Builder b = s.make();
      std::vector<Value> operands = {b.Float({blocks * s.rows, s.cols}),
                                     b.Unit({blocks * s.rows}),
                                     b.Unit({blocks, s.cols})};
      if (labels) operands.push_back(b.Unit({blocks, s.cols}));
      b.Run(operands, PositivesAttrs{labels ? 0 : s.cols / 2});
    }
  }
}
constexpr auto CasesSigmoidBceGrad = CasesSigmoidBce;

void CasesSgnsWindow(const Sizes& s) {
  for (bool in_place : {false, true}) {
    WindowCase(s.make(), s.op, s.rows, s.cols, s.k, in_place);
  }
}
constexpr auto CasesCbowWindow = CasesSgnsWindow;

void CasesAddBias(const Sizes& s) {
  Builder b = s.make();
  b.Run({b.Float({s.rows, s.cols}), b.Float({s.cols})});
}

void CasesBroadcastRows(const Sizes& s) {
  Builder b = s.make();
  b.Run({b.Float({s.cols})}, RowsAttrs{s.rows});
}

void CasesReduceRows(const Sizes& s) {
  Builder b = s.make();
  b.Run({b.Float({s.rows, s.cols})});
}
constexpr auto CasesSoftmax = CasesReduceRows;

void CasesNllLoss(const Sizes& s) {
  for (int64_t batch : {int64_t{0}, 2 * s.rows}) {
    Builder b = s.make();
    b.Run({b.Float({s.rows, s.cols}), b.Below(s.rows, s.cols)},
          MeanAttrs{batch});
  }
}

void CasesMinusOneHot(const Sizes& s) {
  Builder b = s.make();
  b.Run({b.Float({s.rows, s.cols}), b.Below(s.rows, s.cols)});
}
constexpr auto CasesCountCorrect = CasesMinusOneHot;

void CasesMseLoss(const Sizes& s) {
  for (int64_t batch : {int64_t{0}, 2 * s.rows}) {
    Builder b = s.make();
    b.Run({b.Float({s.rows, s.cols}), b.Unit({s.rows, s.cols})},
          MeanAttrs{batch});
    Builder c = s.make();
    c.Run({c.Float({s.rows}), c.Unit({s.rows})}, MeanAttrs{batch});
  }
}
constexpr auto CasesMseGrad = CasesMseLoss;

void CasesSgdUpdate(const Sizes& s) {
  for (float decay : {0.0f, 0.01f}) {
    Builder b = s.make();
    const Value w = b.Param({s.rows, s.cols});
    b.RunUpdate({w, b.Float({s.rows, s.cols}), b.Scalar(0.1)}, {w},
                SgdAttrs{decay});
    Builder c = s.make();  // not in place
    c.Run({c.Float({s.rows, s.cols}), c.Float({s.rows, s.cols}), c.Scalar(0.1)},
          SgdAttrs{decay});
  }
}

void CasesMomentumUpdate(const Sizes& s) {
  for (bool nesterov : {false, true}) {
    Builder b = s.make();
    const Value w = b.Param({s.rows, s.cols}), v = b.Param({s.rows, s.cols});
    b.RunUpdate({w, b.Float({s.rows, s.cols}), v, b.Scalar(0.1)}, {w, v},
                MomentumAttrs{0.9f, nesterov, nesterov ? 0.01f : 0.0f});
  }
}

void CasesAdamUpdate(const Sizes& s) {
  for (bool decoupled : {false, true}) {
    Builder b = s.make();
    const Value w = b.Param({s.rows, s.cols}), m = b.Param({s.rows, s.cols});
    const Value v = b.Param({s.rows, s.cols}, /*positive=*/true);
    AdamAttrs a;
    a.weight_decay = 0.01f;
    a.decoupled = decoupled;
    b.RunUpdate({w, b.Float({s.rows, s.cols}), m, v, b.Scalar(0.01),
                 b.Scalar(decoupled ? 1 : 100)},
                {w, m, v}, a);
  }
}

void CasesGatherConvert(const Sizes& s) {
  Builder b = s.make();
  b.Run({b.Bytes({s.rows, s.cols}), b.Below(s.k, s.rows)},
        ScaleAttrs{1.0f / 255});
}

void CasesLossGrad(const Sizes& s) {
  for (int bits = 0; bits < 24; ++bits) {
    LossGradAttrs a;
    a.loss = bits & 1 ? Loss::kMse : Loss::kSoftmaxXent;
    a.gather = bits & 2;
    a.scaled = bits & 4;
    a.bias = static_cast<BiasGrad>(bits / 8);
    if (bits % 3 == 0) a.rows = s.rows + 3;
    Builder b = s.make();
    std::vector<Value> operands = {b.Float({s.rows, s.cols}),
                                   b.Below(a.gather ? s.k : s.rows, s.cols)};
    if (a.gather) operands.push_back(b.Below(s.rows, s.k));
    if (a.scaled) operands.push_back(b.Scalar(0.1));
    if (a.bias == BiasGrad::kUpdate) operands.push_back(b.Float({s.cols}));
    b.Run(operands, a);
  }
}

void CasesActivationGrad(const Sizes& s) {
  for (const Activation activation : kAllActivations) {
    for (const BiasGrad bias :
         {BiasGrad::kNone, BiasGrad::kGrad, BiasGrad::kUpdate}) {
      Builder b = s.make();
      // What a sigmoid or a hyperbolic tangent gives is bounded.
      const bool unbounded = activation == Activation::kRelu ||
                             ActivationGradReadsOperand(activation);
      std::vector<Value> operands = {
          unbounded ? b.Float({s.rows, s.cols}) : b.Unit({s.rows, s.cols}),
          b.Float({s.rows, s.cols})};
      if (bias == BiasGrad::kUpdate) operands.push_back(b.Float({s.cols}));
      b.Run(operands, ActivationGradAttrs{activation, bias});
    }
  }
}

void CasesGatherSparse(const Sizes& s) {
  Builder b = s.make();
  b.RunToDense(b.Sparse(s.k, s.rows, s.cols), s.cols);
}

void CasesSparseMatMul(const Sizes& s) {
  for (bool bias : {false, true}) {
    SparseMatMulAttrs a;
    a.bias = bias;
    a.activation = static_cast<Activation>((s.rows + s.cols + s.k + bias) % 5);
    Builder b = s.make();
    std::vector<Value> operands = {b.Sparse(s.rows, 5, s.k),
                                   b.Float({s.k, s.cols})};
    if (bias) operands.push_back(b.Float({s.cols}));
    b.Run(operands, a);
  }
}

void CasesSparseOuter(const Sizes& s) {
  Builder b = s.make();
  b.Run({b.Sparse(s.k, 5, s.rows), b.Float({s.k, s.cols})},
        SparseOuterAttrs{s.rows, false});
  Builder c = s.make();
  const Value x = c.Sparse(s.k, 5, s.rows), dz = c.Float({s.k, s.cols});
  const Value dw = c.Param({s.rows, s.cols});
  c.RunUpdate({x, dz, dw}, {dw}, SparseOuterAttrs{s.rows, true});
}

void CasesActivation(const Sizes& s) {
  for (const Activation activation : kAllActivations) {
    Builder b = s.make();
    b.Run({b.Float({s.rows, s.cols})}, ActivationAttrs{activation});
  }
}

// By kind: a row of ops.def without cases does not compile.
constexpr void (*kCases[])(const Sizes&) = {
#define OP(kind, ...) Cases##kind,
#include "compiler/ir/ops.def"
#undef OP
};

}  // namespace

void ForEachOpCase(const std::function<void(const OpCase&)>& fn) {
  for (const OpDef& def : AllOps()) {
    // Pairs of sizes that together cover every size as rows and as columns.
    for (size_t i = 0; i < kOddSizes.size(); ++i) {
      for (size_t step : {0, 2, 5}) {
        const size_t n = kOddSizes.size();
        kCases[static_cast<size_t>(def.kind)](
            {fn, def.kind, kOddSizes[i], kOddSizes[(i + step) % n],
             kOddSizes[(i + 2 * step + 1) % n]});
      }
    }
  }
}

}  // namespace onestep
