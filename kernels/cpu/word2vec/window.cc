// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/word2vec/window.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/word2vec/window.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/word2vec/window_step-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

// ---- dots and loss ----------------------------------------------------------

// The number of contexts whose dot products are computed at once, limited by
// the number of registers.
#if HWY_TARGET == HWY_AVX3
constexpr int64_t kTogether = 4;
#else
constexpr int64_t kTogether = 2;
#endif

#if HWY_TARGET == HWY_SCALAR

template <int kContexts>
HWY_INLINE void StoreDots(V (&z)[kContexts][kBlock], float* tile) {
  std::fill_n(tile, (kContexts + 1) / 2 * kTile, 0.0f);
  for (int64_t j = 0; j < kContexts; ++j) {
    for (int64_t k = 0; k < kBlock; ++k) {
      tile[j / 2 * kTile + AtTile(j % 2, k)] = hn::GetLane(z[j][k]);
    }
  }
}

#else

using D4 = hn::Full128<float>;
using V4 = hn::Vec<D4>;

template <class DX>
HWY_INLINE V4 SumOfBlocks(DX d, hn::Vec<DX> v) {
  if constexpr (hn::MaxLanes(DX()) == 4) {
    return v;
  } else {
    const hn::Half<DX> half;
    return SumOfBlocks(half,
                       hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// The four horizontal sums of a, b, c and e.
HWY_INLINE V4 SumsOf(V a, V b, V c, V e) {
  const D d;
  const hn::RepartitionToWide<D> dd;
  const V ab =
      hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const V ce =
      hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto ab2 = hn::BitCast(dd, ab), ce2 = hn::BitCast(dd, ce);
  return SumOfBlocks(
      d, hn::Add(hn::BitCast(d, hn::InterleaveLower(dd, ab2, ce2)),
                 hn::BitCast(d, hn::InterleaveUpper(dd, ab2, ce2))));
}

// Stores whole vectors, because a load that spans several stores stalls.
template <class DX>
HWY_INLINE void StoreTile(DX d, V4 a, V4 b, V4 c, float* tile) {
  const V4 zero = hn::Zero(D4());
  if constexpr (hn::MaxLanes(DX()) == 16) {
    const hn::Half<DX> half;
    const auto low = hn::Combine(half, b, a);
    hn::StoreU(hn::Combine(d, hn::Combine(half, zero, c), low), d, tile);
  } else if constexpr (hn::MaxLanes(DX()) == 8) {
    hn::StoreU(hn::Combine(d, b, a), d, tile);
    hn::StoreU(hn::Combine(d, zero, c), d, tile + 8);
  } else {
    hn::StoreU(a, d, tile);
    hn::StoreU(b, d, tile + 4);
    hn::StoreU(c, d, tile + 8);
    hn::StoreU(zero, d, tile + 12);
  }
}

template <int kContexts>
HWY_INLINE void StoreDots(V (&z)[kContexts][kBlock], float* tile) {
  HWY_UNROLL(2)
  for (int j = 0; j < kContexts; j += 2) {
    constexpr int kNext = kContexts > 1 ? 1 : 0;
    const V(&a)[kBlock] = z[j];
    const V(&b)[kBlock] = z[j + kNext];
    const V4 first = SumsOf(a[0], a[1], a[2], a[3]);
    const V4 second = kNext ? SumsOf(b[0], b[1], b[2], b[3]) : hn::Zero(D4());
    StoreTile(D(), first, second, SumsOf(a[4], a[5], b[4], b[5]),
              tile + j / 2 * kTile);
  }
}

#endif  // HWY_TARGET

// Writes the dot products of kContexts rows x with a block of rows o to their
// tiles.
template <int kContexts>
HWY_INLINE void Dots(float* const* x, float* const* o, int64_t cols,
                     float* tile) {
  V z[kContexts][kBlock];
  HWY_UNROLL(4)
  for (int j = 0; j < kContexts; ++j) {
    HWY_UNROLL(6)
    for (int k = 0; k < kBlock; ++k) z[j][k] = hn::Zero(D());
  }
  ForVectors(cols, [&](int64_t c, auto lanes) HWY_ATTR {
    V row[kContexts];
    HWY_UNROLL(4)
    for (int j = 0; j < kContexts; ++j) row[j] = lanes.Load(x[j] + c);
    HWY_UNROLL(6)
    for (int k = 0; k < kBlock; ++k) {
      const V output = lanes.Load(o[k] + c);
      HWY_UNROLL(4)
      for (int j = 0; j < kContexts; ++j) {
        z[j][k] = hn::MulAdd(row[j], output, z[j][k]);
      }
    }
  });
  StoreDots<kContexts>(z, tile);
}

// Replaces the dot products of a tile by the coefficients of the update and
// returns their part of the loss.
HWY_INLINE V Coefficients(const float* masks, const float* weights,
                          const float* targets, V lr, float* tile) {
  const D d;
  V loss = hn::Zero(d);
  HWY_UNROLL(4)
  for (int64_t i = 0; i < kTile; i += kLanes) {
    const V mask = hn::LoadU(d, masks + i);
    const V weight = hn::Mul(mask, hn::LoadU(d, weights + i));
    const V target = hn::Mul(mask, hn::LoadU(d, targets + i));
    const V z = hn::LoadU(d, tile + i);
    const V e = ExpOfNonPositive(hn::Neg(hn::Abs(z)));
    const V p = hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), e));
    const V sigmoid = hn::IfThenElse(hn::Lt(z, hn::Zero(d)), hn::Mul(e, p), p);
    // weight softplus(z) - target z, arranged so that no large terms cancel.
    const V above = hn::IfThenElseZero(hn::Gt(z, hn::Zero(d)), weight);
    const V linear = hn::Mul(hn::Sub(above, target), z);
    loss = hn::Add(loss, hn::MulAdd(weight, Log1pOfUnit(e), linear));
    hn::StoreU(hn::Mul(lr, hn::NegMulAdd(weight, sigmoid, target)), d,
               tile + i);
  }
  return loss;
}

// ---- updates ----------------------------------------------------------------

// Local copies of the pointers to a block's rows. The compiler must assume that
// a vector store overwrites pointers in memory and would reload them after it.
struct BlockRows {
  explicit HWY_INLINE BlockRows(float* const* o) {
    HWY_UNROLL(6)
    for (int k = 0; k < kBlock; ++k) rows[k] = o[k];
  }
  HWY_INLINE float* operator[](int k) const { return rows[k]; }
  float* rows[kBlock];
};

// Updates a block of outputs and all contexts: x[j] += the sum over k of g
// o[k], and o[k] += the sum over j of g old_x[j], with the coefficients g of
// the pairs' tiles. With kCopied, old_x are copies of x; else they are x
// itself.
template <bool kCopied>
HWY_INLINE void Update(const float* tiles, float* const* x,
                       const float* old_rows, int64_t num_contexts,
                       float* const* outputs, int64_t cols) {
  const BlockRows o(outputs);
  ForVectors(cols, [&](int64_t c, auto lanes) HWY_ATTR {
    V old[kBlock], now[kBlock];
    HWY_UNROLL(6)
    for (int k = 0; k < kBlock; ++k) old[k] = now[k] = lanes.Load(o[k] + c);
    const auto add = [&](const float* tile, int64_t j,
                         int64_t second) HWY_ATTR {
      float* const row = x[j] + c;
      const V before = lanes.Load(kCopied ? old_rows + j * cols + c : row);
      V after = kCopied ? lanes.Load(row) : before;
      HWY_UNROLL(6)
      for (int64_t k = 0; k < kBlock; ++k) {
        const V g = hn::Set(D(), tile[AtTile(second, k)]);
        now[k] = hn::MulAdd(g, before, now[k]);
        after = hn::MulAdd(g, old[k], after);
      }
      lanes.Store(after, row);
    };
    const float* tile = tiles;
    int64_t j = 0;
    for (; j + 2 <= num_contexts; j += 2, tile += kTile) {
      add(tile, j, 0);
      add(tile, j + 1, 1);
    }
    if (j < num_contexts) add(tile, j, 0);
    HWY_UNROLL(6)
    for (int k = 0; k < kBlock; ++k) lanes.Store(now[k], o[k] + c);
  });
}

// The update of CBOW, with the mean of the contexts: error += the sum over k of
// g o[k], and o[k] += g mean.
HWY_INLINE void UpdateMean(const float* tile, const float* mean, float* error,
                           float* const* outputs, int64_t cols) {
  const BlockRows o(outputs);
  ForVectors(cols, [&](int64_t c, auto lanes) HWY_ATTR {
    const V x = lanes.Load(mean + c);
    V sum = lanes.Load(error + c);
    HWY_UNROLL(6)
    for (int64_t k = 0; k < kBlock; ++k) {
      const V row = lanes.Load(o[k] + c);
      const V g = hn::Set(D(), tile[AtTile(0, k)]);
      sum = hn::MulAdd(g, row, sum);
      lanes.Store(hn::MulAdd(g, x, row), o[k] + c);
    }
    lanes.Store(sum, error + c);
  });
}

// ---- steps ------------------------------------------------------------------

// Fills the tiles of a step with its coefficients and returns its loss.
HWY_INLINE V SkipGramForward(const Step& step, int64_t cols, V lr,
                             float* tiles) {
  const int64_t m = step.num_contexts, pairs = (m + 1) / 2;
  V loss = hn::Zero(D());
  for (int64_t b = 0; b < step.num_blocks; ++b) {
    float* const* const o = step.outputs + b * kBlock;
    float* const block = tiles + b * pairs * kTile;
    const auto finish = [&](int64_t j) HWY_ATTR {
      const int64_t at = j / 2 * kTile;
      loss = hn::Add(loss,
                     Coefficients(step.masks[j / 2], step.weights + b * kTile,
                                  step.targets + b * kTile, lr, block + at));
    };
    int64_t j = 0;
    for (; j + kTogether <= m; j += kTogether) {
      Dots<kTogether>(step.contexts + j, o, cols, block + j / 2 * kTile);
      for (int64_t p = j; p < j + kTogether; p += 2) finish(p);
    }
    for (; j + 2 <= m; j += 2) {
      Dots<2>(step.contexts + j, o, cols, block + j / 2 * kTile);
      finish(j);
    }
    if (j < m) {
      Dots<1>(step.contexts + j, o, cols, block + j / 2 * kTile);
      finish(j);
    }
  }
  return loss;
}

HWY_INLINE void SkipGramBackward(const Step& step, int64_t cols,
                                 const Scratch& scratch) {
  const int64_t m = step.num_contexts, pairs = (m + 1) / 2;
  if (step.num_blocks == 1) {
    return Update<false>(scratch.tiles, step.contexts, nullptr, m, step.outputs,
                         cols);
  }
  for (int64_t j = 0; j < m; ++j) {
    std::copy_n(step.contexts[j], cols, scratch.old_contexts + j * cols);
  }
  for (int64_t b = 0; b < step.num_blocks; ++b) {
    Update<true>(scratch.tiles + b * pairs * kTile, step.contexts,
                 scratch.old_contexts, m, step.outputs + b * kBlock, cols);
  }
}

// Calls f(c, n, lanes) for consecutive groups of columns: n vectors from column
// c on, where n is a compile-time constant of at most 8 and the last vector may
// be partial. With so many columns per call, a loop over rows inside f usually
// runs once and its exit is mispredicted once.
template <class F>
HWY_INLINE void ForColumns(int64_t cols, F f) {
  int64_t c = 0;
  for (; c + 8 * kLanes <= cols; c += 8 * kLanes) {
    f(c, std::integral_constant<int, 8>(), Full());
  }
  const int64_t vecs = (cols - c) / kLanes;
  if (vecs >= 4) {
    switch (vecs) {
      case 4:
        f(c, std::integral_constant<int, 4>(), Full());
        break;
      case 5:
        f(c, std::integral_constant<int, 5>(), Full());
        break;
      case 6:
        f(c, std::integral_constant<int, 6>(), Full());
        break;
      default:
        f(c, std::integral_constant<int, 7>(), Full());
        break;
    }
    c += vecs * kLanes;
  }
  for (; c + kLanes <= cols; c += kLanes) {
    f(c, std::integral_constant<int, 1>(), Full());
  }
  if (c < cols) f(c, std::integral_constant<int, 1>(), Part(cols - c));
}

HWY_INLINE V CbowForward(const Step& step, int64_t cols, V lr,
                         const Scratch& scratch) {
  ForColumns(cols, [&](int64_t c, auto vecs, auto lanes) HWY_ATTR {
    V sum[vecs];
    for (int v = 0; v < vecs; ++v) sum[v] = hn::Zero(D());
    for (int64_t j = 0; j < step.num_contexts; ++j) {
      const V weight = hn::Set(D(), step.mean_of[j]);
      const float* const row = step.contexts[j] + c;
      for (int v = 0; v < vecs; ++v) {
        sum[v] = hn::MulAdd(weight, lanes.Load(row + v * kLanes), sum[v]);
      }
    }
    for (int v = 0; v < vecs; ++v) {
      lanes.Store(sum[v], scratch.mean + c + v * kLanes);
    }
  });
  V loss = hn::Zero(D());
  for (int64_t b = 0; b < step.num_blocks; ++b) {
    float* const tile = scratch.tiles + b * kTile;
    Dots<1>(&scratch.mean, step.outputs + b * kBlock, cols, tile);
    loss = hn::Add(loss, Coefficients(kFirst, step.weights + b * kTile,
                                      step.targets + b * kTile, lr, tile));
  }
  return loss;
}

HWY_INLINE void CbowBackward(const Step& step, int64_t cols,
                             const Scratch& scratch) {
  std::fill_n(scratch.error, cols, 0.0f);
  for (int64_t b = 0; b < step.num_blocks; ++b) {
    UpdateMean(scratch.tiles + b * kTile, scratch.mean, scratch.error,
               step.outputs + b * kBlock, cols);
  }
  ForColumns(cols, [&](int64_t c, auto vecs, auto lanes) HWY_ATTR {
    V error[vecs];
    for (int v = 0; v < vecs; ++v) {
      error[v] = lanes.Load(scratch.error + c + v * kLanes);
    }
    for (int64_t j = 0; j < step.num_contexts; ++j) {
      const V weight = hn::Set(D(), step.spread[j]);
      float* const row = step.contexts[j] + c;
      for (int v = 0; v < vecs; ++v) {
        float* const at = row + v * kLanes;
        lanes.Store(hn::MulAdd(weight, error[v], lanes.Load(at)), at);
      }
    }
  });
}

// The number of steps by which rows of outputs are prefetched ahead. In a large
// vocabulary they come from the third-level cache or from memory, and a step is
// short.
constexpr int64_t kStepsAhead = 4;

// Runs the steps. The next step is prepared between the forward and backward
// pass of the current one, while the latter waits for its coefficients.
template <class Prepare, class Forward, class Backward>
HWY_INLINE void Run(const WindowArgs& args, int64_t steps, Prepare prepare,
                    Forward forward, Backward backward) {
  const D d;
  Scratch scratch(args.scratch, args.num_contexts, args.num_outputs, args.cols);
  std::memset(scratch.begin, 0, scratch.head_end - scratch.begin);
  for (int64_t k = 0; k < args.num_outputs; ++k) {
    SetOutput(scratch.ones, k, 1);
    SetOutput(scratch.positives, k, k < args.positives ? 1.0f : 0.0f);
  }
  const auto prefetch = [&](int64_t t) {
    if (t < steps) PrefetchOutputs(args, t);
  };
  for (int64_t t = 0; t < kStepsAhead; ++t) prefetch(t);
  prepare(0, scratch, scratch.steps[0]);
  for (int64_t t = 0; t < steps; ++t) {
    const Step& step = scratch.steps[t % 2];
    const V lr = hn::Set(d, args.lr[t * args.lr_stride]);
    args.loss[t * args.loss_stride] =
        hn::GetLane(hn::SumOfLanes(d, forward(step, lr, scratch)));
    prefetch(t + kStepsAhead);
    if (t + 1 < steps) prepare(t + 1, scratch, scratch.steps[(t + 1) % 2]);
    backward(step, scratch);
  }
}

void SkipGramWindows(const WindowArgs& args, int64_t steps) {
  const int64_t cols = args.cols;
  Run(
      args, steps,
      [&](int64_t t, const Scratch& scratch, Step& step)
          HWY_ATTR { PrepareSkipGram(args, t, scratch, step); },
      [=](const Step& step, V lr, const Scratch& scratch)
          HWY_ATTR { return SkipGramForward(step, cols, lr, scratch.tiles); },
      [=](const Step& step, const Scratch& scratch)
          HWY_ATTR { SkipGramBackward(step, cols, scratch); });
}

void CbowWindows(const WindowArgs& args, int64_t steps) {
  const int64_t cols = args.cols;
  Run(
      args, steps,
      [&](int64_t t, const Scratch& scratch, Step& step)
          HWY_ATTR { PrepareCbow(args, t, scratch, step); },
      [=](const Step& step, V lr, const Scratch& scratch)
          HWY_ATTR { return CbowForward(step, cols, lr, scratch); },
      [=](const Step& step, const Scratch& scratch)
          HWY_ATTR { CbowBackward(step, cols, scratch); });
}

int64_t ScratchBytes(int64_t num_contexts, int64_t num_outputs, int64_t cols) {
  const Scratch scratch(nullptr, num_contexts, num_outputs, cols);
  return scratch.end - scratch.begin;
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(SkipGramWindows);
HWY_EXPORT(CbowWindows);

int64_t WindowScratchBytes(int64_t num_contexts, int64_t num_outputs,
                           int64_t cols) {
  return HWY_STATIC_DISPATCH(ScratchBytes)(num_contexts, num_outputs, cols);
}

void SkipGramWindows(const WindowArgs& args, int64_t steps) {
  HWY_DYNAMIC_DISPATCH(SkipGramWindows)(args, steps);
}

void CbowWindows(const WindowArgs& args, int64_t steps) {
  HWY_DYNAMIC_DISPATCH(CbowWindows)(args, steps);
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
