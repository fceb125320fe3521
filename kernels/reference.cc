// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace onestep::reference {
namespace {

// Standard normal distribution; erfc keeps the digits of the left tail.
double NormalCdf(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

double NormalPdf(double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846);
}

double Activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
#define ACTIVATION(Kind, text, saved, flops, grad_flops, f, gradient) \
  case Activation::k##Kind:                                           \
    return f;
#include "kernels/activations.def"
#undef ACTIVATION
  }
  return x;
}

double ActivatedGrad(Activation activation, double saved, double dy) {
  [[maybe_unused]] const double x = saved, y = saved;
  switch (activation) {
    case Activation::kNone:
      return dy;
#define ACTIVATION(Kind, text, saves, flops, grad_flops, f, gradient) \
  case Activation::k##Kind:                                           \
    return gradient;
#include "kernels/activations.def"
#undef ACTIVATION
  }
  return dy;
}

int64_t Int(double label) { return static_cast<int64_t>(label); }

// Of element i of z: its place in weights and labels, and what they hold.
int64_t PairOf(const SigmoidBceArgs& a, int64_t i) {
  const int64_t block = i / (a.rows / a.blocks * a.cols);
  return block * a.cols + i % a.cols;
}

double WeightOf(const SigmoidBceArgs& a, int64_t i) {
  return a.mask[i / a.cols] * a.weights[PairOf(a, i)];
}

double LabelOf(const SigmoidBceArgs& a, int64_t i) {
  if (a.labels != nullptr) return a.labels[PairOf(a, i)];
  return i % a.cols < a.positives ? 1 : 0;
}

// ---- update rules: `hyper` is in the order of the op's attributes ----------
void Sgd(const UpdateArgs& a) {
  const double weight_decay = a.hyper[0];
  for (int64_t i = 0; i < a.n; ++i) {
    const double g = a.dw[i] + weight_decay * a.w[i];
    a.w_out[i] = a.w[i] - a.lr * g;
  }
}

void Momentum(const UpdateArgs& a) {
  const double momentum = a.hyper[0], weight_decay = a.hyper[1];
  const bool nesterov = a.flag;
  for (int64_t i = 0; i < a.n; ++i) {
    const double g = a.dw[i] + weight_decay * a.w[i];
    const double v = momentum * a.state[0][i] + g;
    const double step = nesterov ? g + momentum * v : v;
    a.w_out[i] = a.w[i] - a.lr * step;
    a.state_out[0][i] = v;
  }
}

// Kingma and Ba, 2015, algorithm 1; decoupled: Loshchilov and Hutter, 2019,
// algorithm 2, with the decay multiplied by lr.
void Adam(const UpdateArgs& a) {
  const double beta1 = a.hyper[0], beta2 = a.hyper[1], epsilon = a.hyper[2];
  const double weight_decay = a.hyper[3];
  const bool decoupled = a.flag;
  for (int64_t i = 0; i < a.n; ++i) {
    const double w = a.w[i];
    const double g = decoupled ? a.dw[i] : a.dw[i] + weight_decay * w;
    const double m = beta1 * a.state[0][i] + (1 - beta1) * g;
    const double v = beta2 * a.state[1][i] + (1 - beta2) * g * g;
    const double m_hat = m / (1 - std::pow(beta1, a.step));
    const double v_hat = v / (1 - std::pow(beta2, a.step));
    const double decay = decoupled ? a.lr * weight_decay * w : 0;
    a.w_out[i] = w - decay - a.lr * m_hat / (std::sqrt(v_hat) + epsilon);
    a.state_out[0][i] = m;
    a.state_out[1][i] = v;
  }
}

}  // namespace

void GatherRows(const double* table, const double* indices, double* y,
                int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      y[r * cols + c] = table[Int(indices[r]) * cols + c];
    }
  }
}

void ScatterAdd(const double* table, const double* indices, const double* x,
                double* y, int64_t table_rows, int64_t rows, int64_t cols) {
  if (y != table) std::copy_n(table, table_rows * cols, y);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      y[Int(indices[r]) * cols + c] += x[r * cols + c];
    }
  }
}

void Slice(const double* x, double* y, int64_t rows, int64_t cols,
           int64_t x_cols, int64_t row, int64_t col) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      y[r * cols + c] = x[(row + r) * x_cols + col + c];
    }
  }
}

void OneHot(const double* labels, double* y, int64_t rows, int64_t classes) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < classes; ++c) {
      y[r * classes + c] = c == Int(labels[r]) ? 1 : 0;
    }
  }
}

void Scale(const double* x, double alpha, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = alpha * x[i];
}

void Add(const double* a, const double* b, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

void Mul(const double* a, const double* b, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

void MatMul(const double* a, const double* b, double* c, int64_t m, int64_t n,
            int64_t k, bool trans_a, bool trans_b) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += (trans_a ? a[p * m + i] : a[i * k + p]) *
               (trans_b ? b[j * k + p] : b[p * n + j]);
      }
      c[i * n + j] = sum;
    }
  }
}

void AddBias(const double* x, const double* b, double* y, int64_t rows,
             int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      y[r * cols + c] = x[r * cols + c] + b[c];
    }
  }
}

void ReduceRows(const double* x, double* y, int64_t rows, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    y[c] = 0;
    for (int64_t r = 0; r < rows; ++r) y[c] += x[r * cols + c];
  }
}

void BroadcastRows(const double* x, double* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) y[r * cols + c] = x[c];
  }
}

void Activate(Activation activation, const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = Activated(activation, x[i]);
}

void ActivateGrad(Activation activation, const double* saved, const double* dy,
                  double* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    dx[i] = ActivatedGrad(activation, saved[i], dy[i]);
  }
}

void Softmax(const double* x, double* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = x + r * cols;
    const double max = *std::max_element(row, row + cols);
    double sum = 0;
    for (int64_t c = 0; c < cols; ++c) sum += std::exp(row[c] - max);
    for (int64_t c = 0; c < cols; ++c) {
      y[r * cols + c] = std::exp(row[c] - max) / sum;
    }
  }
}

void SoftmaxGrad(const double* y, const double* dy, double* dx, int64_t rows,
                 int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = r * cols;
    double dot = 0;
    for (int64_t c = 0; c < cols; ++c) dot += dy[row + c] * y[row + c];
    for (int64_t c = 0; c < cols; ++c) {
      dx[row + c] = (dy[row + c] - dot) * y[row + c];
    }
  }
}

double NllLoss(const double* logits, const double* labels, int64_t rows,
               int64_t cols, int64_t batch) {
  double sum = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = logits + r * cols;
    const double max = *std::max_element(row, row + cols);
    double sum_exp = 0;
    for (int64_t c = 0; c < cols; ++c) sum_exp += std::exp(row[c] - max);
    // The large terms first, so that equal ones cancel without a rounding.
    sum += (max - row[Int(labels[r])]) + std::log(sum_exp);
  }
  return sum / static_cast<double>(batch);
}

void MinusOneHot(const double* p, const double* labels, double* y, int64_t rows,
                 int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      y[r * cols + c] = p[r * cols + c] - (c == Int(labels[r]) ? 1 : 0);
    }
  }
}

double MseLoss(const double* y, const double* t, int64_t n, int64_t batch) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += (y[i] - t[i]) * (y[i] - t[i]);
  return sum / static_cast<double>(batch);
}

void MseGrad(const double* y, const double* t, double* dy, int64_t n,
             int64_t batch) {
  for (int64_t i = 0; i < n; ++i) {
    dy[i] = 2 * (y[i] - t[i]) / static_cast<double>(batch);
  }
}

double SigmoidBce(const SigmoidBceArgs& a) {
  double sum = 0;
  for (int64_t i = 0; i < a.rows * a.cols; ++i) {
    const double z = a.z[i];
    const double softplus =
        std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z)));
    sum += WeightOf(a, i) * (softplus - LabelOf(a, i) * z);
  }
  return sum;
}

void SigmoidBceGrad(const SigmoidBceArgs& a, double* dz) {
  for (int64_t i = 0; i < a.rows * a.cols; ++i) {
    const double y = 1 / (1 + std::exp(-a.z[i]));
    dz[i] = WeightOf(a, i) * (y - LabelOf(a, i));
  }
}

double Window(const WindowArgs& a, double* new_in, double* new_out) {
  const int64_t c = a.num_contexts, n = a.num_outputs, cols = a.cols;
  const bool cbow = a.mean != nullptr;
  const int64_t rows = cbow ? 1 : c;  // of h
  const std::vector<double> one = {1};
  std::vector<double> x(c * cols), o(n * cols), h(rows * cols), z(rows * n);
  std::vector<double> dh(rows * cols), dx(c * cols), d_o(n * cols);
  GatherRows(a.in, a.contexts, x.data(), c, cols);
  GatherRows(a.out, a.outputs, o.data(), n, cols);
  if (cbow) {
    MatMul(a.mean, x.data(), h.data(), 1, cols, c, false, false);
  } else {
    h = x;
  }
  MatMul(h.data(), o.data(), z.data(), rows, n, cols, false, true);
  const SigmoidBceArgs pairs = {
      z.data(),   cbow ? one.data() : a.mask, a.weights, a.labels, rows, n, 1,
      a.positives};
  const double loss = SigmoidBce(pairs);
  SigmoidBceGrad(pairs, z.data());
  Scale(z.data(), -a.lr, z.data(), rows * n);
  MatMul(z.data(), o.data(), dh.data(), rows, cols, n, false, false);
  MatMul(z.data(), h.data(), d_o.data(), n, cols, rows, true, false);
  if (cbow) {
    MatMul(a.spread, dh.data(), dx.data(), c, cols, 1, true, false);
  } else {
    dx = dh;
  }
  ScatterAdd(a.in, a.contexts, dx.data(), new_in, a.in_rows, c, cols);
  ScatterAdd(a.out, a.outputs, d_o.data(), new_out, a.out_rows, n, cols);
  return loss;
}

double CountCorrect(const double* logits, const double* labels, int64_t rows,
                    int64_t cols) {
  double count = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = logits + r * cols;
    const bool finite =
        std::all_of(row, row + cols, [](double z) { return std::isfinite(z); });
    // max_element gives the first of several largest.
    const int64_t guess = std::max_element(row, row + cols) - row;
    if (finite && guess == Int(labels[r])) ++count;
  }
  return count;
}

void Update(UpdateRule rule, const UpdateArgs& args) {
  switch (rule) {
#define RULE(Rule)          \
  case UpdateRule::k##Rule: \
    return Rule(args);
    ONESTEP_UPDATE_RULES(RULE)
#undef RULE
  }
}

void GatherSparse(const double* table, const double* indices, double alpha,
                  double* x, int64_t rows, int64_t cols, int64_t width) {
  std::fill_n(x, rows * width, 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    double* const row = x + r * width;
    row[0] = alpha;
    for (int64_t c = cols - 1; c >= 0; --c) {
      double& three = row[1 + c / 3];
      three = 256 * three + table[Int(indices[r]) * cols + c];
    }
  }
}

void ToDense(const double* x, double* y, int64_t rows, int64_t cols,
             int64_t width) {
  for (int64_t r = 0; r < rows; ++r) {
    const double* const row = x + r * width;
    for (int64_t c = 0; c < cols; ++c) {
      const int64_t byte = Int(row[1 + c / 3]) >> (c % 3 * 8) & 255;
      y[r * cols + c] = row[0] * static_cast<double>(byte);
    }
  }
}

}  // namespace onestep::reference
