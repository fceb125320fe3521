// SPDX-License-Identifier: Apache-2.0
// The preparation of a window step: finds the distinct rows of its contexts and
// outputs with their weights. Also the layout of the scratch memory of a call.

// Per-target include guard, see hwy/foreach_target.h.
#if defined(ONESTEP_KERNELS_CPU_WORD2VEC_WINDOW_STEP_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ONESTEP_KERNELS_CPU_WORD2VEC_WINDOW_STEP_INL_H_
#undef ONESTEP_KERNELS_CPU_WORD2VEC_WINDOW_STEP_INL_H_
#else
#define ONESTEP_KERNELS_CPU_WORD2VEC_WINDOW_STEP_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/cache_control.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/word2vec/window.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

// Outputs are processed in blocks of six: their old and new values, a context
// and a coefficient fill the registers of AVX2.
constexpr int64_t kBlock = 6;
// Contexts are processed in pairs; a pair has 12 dot products with a block. A
// tile of 16 floats holds, in this order, those of the first context with
// outputs 0 to 3, of the second context with outputs 0 to 3, of the first with
// outputs 4 and 5, of the second with outputs 4 and 5, and four zeros.
constexpr int64_t kTile = 16;
constexpr int64_t AtTile(int64_t context, int64_t output) {
  return output < 4 ? 4 * context + output : 4 + 2 * context + output;
}

constexpr int64_t RoundUp(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

// A prepared step: each distinct row once, with its weights. A tile of weights
// has equal values for both contexts of a pair; a tile of masks has equal
// values for all outputs of a block.
struct Step {
  float** contexts;      // [C]: rows of `in`
  float** outputs;       // [N]: rows of `out`, padded with rows of zeros to
                         // full blocks
  const float** masks;   // a tile per pair of contexts
  const float* weights;  // a tile per block of outputs
  const float* targets;  // a tile per block of outputs: weights times labels
  // Tiles of this step, used when the masks or weights are not all 0 or 1.
  float *step_masks, *step_weights, *step_targets;
  float *mean_of, *spread;  // [C], CBOW only
  int64_t num_contexts, num_blocks;
};

// The scratch memory of a call.
struct Scratch {
  Scratch(void* memory, int64_t num_contexts, int64_t num_outputs, int64_t cols)
      : begin(static_cast<char*>(memory)), end(begin) {
    const int64_t pairs = (num_contexts + 1) / 2;
    const int64_t blocks = (num_outputs + kBlock - 1) / kBlock;
    for (Step& step : steps) {
      step.contexts = Take<float*>(num_contexts);
      step.outputs = Take<float*>(blocks * kBlock);
      step.masks = Take<const float*>(pairs);
      step.step_masks = Take<float>(pairs * kTile);
      step.step_weights = Take<float>(blocks * kTile);
      step.step_targets = Take<float>(blocks * kTile);
      step.mean_of = Take<float>(num_contexts);
      step.spread = Take<float>(num_contexts);
    }
    ones = Take<float>(blocks * kTile);
    positives = Take<float>(blocks * kTile);
    zeros = Take<float>(cols);
    head_end = end;
    tiles = Take<float>(blocks * pairs * kTile);
    mean = Take<float>(cols);
    error = Take<float>(cols);
    old_contexts = Take<float>(num_contexts * cols);
  }

  char *begin, *head_end, *end;  // a call zeroes [begin, head_end) first
  Step steps[2];                 // the current step and the next one
  float* ones;                   // tiles of weights that are all 1,
  float* positives;              // and their targets when there are no labels
  float* zeros;                  // one row of zeros
  float* tiles;  // dot products, then coefficients: a tile per block and pair
  float *mean, *error;  // CBOW: the mean of the contexts, and its gradient
  float* old_contexts;  // copies of the rows, used with more than one block

 private:
  template <typename T>
  T* Take(int64_t n) {
    T* const taken = reinterpret_cast<T*>(end);
    end += RoundUp(n * static_cast<int64_t>(sizeof(T)), 64);
    return taken;
  }
};

// ---- the rows of a step -----------------------------------------------------

// Returns m if w is m ones followed by zeros, else -1.
HWY_INLINE int64_t OnesThenZeros(const float* w, int64_t n) {
  const D d;
  int64_t ones = 0;
  bool plain = true;
  ForVectors(n, [&](int64_t i, auto lanes) HWY_ATTR {
    const V v = lanes.Or(lanes.Load(w + i), hn::Zero(d));
    const M is_one = hn::Eq(v, hn::Set(d, 1.0f));
    const auto count = static_cast<int64_t>(hn::CountTrue(d, is_one));
    plain = plain && (count == 0 || ones == i) &&
            hn::AllTrue(d, hn::Eq(v, hn::IfThenElseZero(hn::FirstN(d, count),
                                                        hn::Set(d, 1.0f))));
    ones += count;
  });
  return plain ? ones : -1;
}

// Whether any index occurs more than once.
HWY_INLINE bool HasRepeats(const int32_t* indices, int64_t n) {
  const D d;
  const hn::RebindToSigned<D> di;
  bool repeats = false;
  ForVectors(n, [&](int64_t i, auto lanes) HWY_ATTR {
    const V bits = lanes.Load(reinterpret_cast<const float*>(indices + i));
    const auto at = hn::BitCast(di, bits);
    auto found = hn::Zero(di);  // minus the number of occurrences of each
    for (int64_t k = 0; k < n; ++k) {
      const auto same = hn::Eq(at, hn::Set(di, indices[k]));
      found = hn::Add(found, hn::VecFromMask(di, same));
    }
    const V often = lanes.Or(hn::ConvertTo(d, found), hn::Zero(d));
    repeats = repeats || !hn::AllTrue(d, hn::Ge(often, hn::Set(d, -1.0f)));
  });
  return repeats;
}

// Calls f(index, weight, target) once for each distinct index of nonzero
// weight. `weight` is the sum of the weights of all its occurrences, `target`
// the sum of their weights times label(i).
template <class Label, class F>
HWY_INLINE void ForEachRow(const int32_t* indices, const float* weights,
                           int64_t n, Label label, F f) {
  for (int64_t i = 0; i < n; ++i) {
    float weight = weights[i], target = weight * label(i);
    if (weight == 0) continue;
    const auto like = [=](int64_t k) {
      return weights[k] != 0 && indices[k] == indices[i];
    };
    int64_t first = 0;
    while (!like(first)) ++first;
    if (first < i) continue;
    for (int64_t k = i + 1; k < n; ++k) {
      if (!like(k)) continue;
      weight += weights[k];
      target += weights[k] * label(k);
    }
    f(indices[i], weight, target);
  }
}

HWY_INLINE void SetContext(float* tile, int64_t second, float value) {
  for (int64_t k = 0; k < kBlock; ++k) tile[AtTile(second, k)] = value;
}

HWY_INLINE void SetOutput(float* tiles, int64_t k, float value) {
  float* const tile = tiles + k / kBlock * kTile;
  tile[AtTile(0, k % kBlock)] = tile[AtTile(1, k % kBlock)] = value;
}

HWY_INLINE void PrefetchRow(const float* row, int64_t cols) {
  for (int64_t c = 0; c < cols; c += 16) hwy::Prefetch(row + c);
}

HWY_INLINE void PrefetchOutputs(const WindowArgs& args, int64_t t) {
  const int64_t n = args.num_outputs;
  for (int64_t k = t * n; k < t * n + n; ++k) {
    // Paths of hierarchical softmax are padded with outputs of weight 0;
    // negative samples hardly ever have weight 0.
    if (args.labels != nullptr && args.weights[k] == 0) continue;
    PrefetchRow(args.out + args.outputs[k] * args.cols, args.cols);
  }
}

// Fills in the outputs of step t.
HWY_INLINE void PrepareOutputs(const WindowArgs& args, int64_t t,
                               const Scratch& scratch, Step& step) {
  const int64_t n = args.num_outputs, cols = args.cols;
  const int32_t* const indices = args.outputs + t * n;
  const float* const weights = args.weights + t * n;
  int64_t count = 0;
  const auto add = [&](int64_t index) {
    step.outputs[count++] = args.out + index * cols;
  };
  if (args.labels == nullptr && OnesThenZeros(weights, n) == n &&
      !HasRepeats(indices, n)) {
    step.weights = scratch.ones;
    step.targets = scratch.positives;
    while (count < n) add(indices[count]);
  } else {
    const float* const labels = args.labels;
    step.weights = step.step_weights;
    step.targets = step.step_targets;
    const auto label = [&](int64_t k) {
      if (labels != nullptr) return labels[t * n + k];
      return k < args.positives ? 1.0f : 0.0f;
    };
    ForEachRow(indices, weights, n, label,
               [&](int64_t index, float weight, float target) {
                 SetOutput(step.step_weights, count, weight);
                 SetOutput(step.step_targets, count, target);
                 add(index);
               });
    for (int64_t k = count; k < RoundUp(count, kBlock); ++k) {
      SetOutput(step.step_weights, k, 0);
      SetOutput(step.step_targets, k, 0);
    }
  }
  while (count % kBlock != 0) step.outputs[count++] = scratch.zeros;
  step.num_blocks = count / kBlock;
}

// Tiles of masks that are 1 for both contexts of a pair, or for the first
// alone.
HWY_ALIGN constexpr float kBoth[kTile] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
HWY_ALIGN constexpr float kFirst[kTile] = {1, 1, 1, 1, 0, 0, 0, 0, 1, 1};

HWY_INLINE void PrepareSkipGram(const WindowArgs& args, int64_t t,
                                const Scratch& scratch, Step& step) {
  const int64_t n = args.num_contexts;
  const int32_t* const indices = args.contexts + t * n;
  const float* const masks = args.mask + t * n;
  int64_t m = OnesThenZeros(masks, n);
  if (m >= 0 && !HasRepeats(indices, m)) {
    for (int64_t j = 0; j < m; ++j) {
      step.contexts[j] = args.in + indices[j] * args.cols;
      PrefetchRow(step.contexts[j], args.cols);
      step.masks[j / 2] = kBoth;
    }
    if (m % 2 != 0) step.masks[m / 2] = kFirst;
  } else {
    m = 0;
    ForEachRow(
        indices, masks, n, [](int64_t) { return 0.0f; },
        [&](int64_t index, float mask, float) {
          step.contexts[m] = args.in + index * args.cols;
          step.masks[m / 2] = step.step_masks + m / 2 * kTile;
          SetContext(step.step_masks + m / 2 * kTile, m % 2, mask);
          ++m;
        });
    if (m % 2 != 0) SetContext(step.step_masks + m / 2 * kTile, 1, 0);
  }
  step.num_contexts = m;
  PrepareOutputs(args, t, scratch, step);
}

HWY_INLINE void PrepareCbow(const WindowArgs& args, int64_t t,
                            const Scratch& scratch, Step& step) {
  const int64_t first = t * args.num_contexts;
  int64_t m = 0;
  for (int64_t j = first; j < first + args.num_contexts; ++j) {
    if (args.mask[j] == 0 && args.spread[j] == 0) continue;
    step.contexts[m] = args.in + args.contexts[j] * args.cols;
    step.mean_of[m] = args.mask[j];
    step.spread[m++] = args.spread[j];
  }
  // New words enter a sliding window at its right end; the others are already
  // in the cache. Prefetching all 2 * window rows is 3 % slower on Zen 5.
  for (int64_t j = std::max<int64_t>(0, m - 3); j < m; ++j) {
    PrefetchRow(step.contexts[j], args.cols);
  }
  step.num_contexts = m;
  PrepareOutputs(args, t, scratch, step);
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ONESTEP_KERNELS_CPU_WORD2VEC_WINDOW_STEP_INL_H_
