// SPDX-License-Identifier: Apache-2.0
// What a step of a window is about and how it is prepared: the rows of its
// contexts and outputs, each once, with their weights; and the memory of a
// call.

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

// Outputs are done six at a time: their old and new values, a context and a
// coefficient fill the registers of AVX2.
constexpr int64_t kBlock = 6;
// Contexts go in pairs, which have 12 dots with a block. A tile of 16 floats
// has those of the first context with outputs 0 to 3, of the second one, of
// the first with outputs 4 and 5, of the second one, and four zeros.
constexpr int64_t kTile = 16;
constexpr int64_t AtTile(int64_t context, int64_t output) {
  return output < 4 ? 4 * context + output : 4 + 2 * context + output;
}

constexpr int64_t RoundUp(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

// What a step is about: each row once, with its weights. Tiles of weights are
// alike for both contexts of a pair, those of masks for all outputs.
struct Step {
  float** contexts;      // [C]
  float** outputs;       // [N], then rows of zeros to whole blocks
  const float** masks;   // a tile per pair of contexts
  const float* weights;  // a tile per block of outputs
  const float* targets;  // weights times labels, likewise
  float *own_masks, *own_weights, *own_targets;  // tiles for other than 0 and 1
  float *mean_of, *spread;                       // [C], of CBOW
  int64_t num_contexts, num_blocks;
};

// The memory of a call.
struct Scratch {
  Scratch(void* memory, int64_t num_contexts, int64_t num_outputs, int64_t cols)
      : begin(static_cast<char*>(memory)), end(begin) {
    const int64_t pairs = (num_contexts + 1) / 2;
    const int64_t blocks = (num_outputs + kBlock - 1) / kBlock;
    for (Step& step : steps) {
      step.contexts = Take<float*>(num_contexts);
      step.outputs = Take<float*>(blocks * kBlock);
      step.masks = Take<const float*>(pairs);
      step.own_masks = Take<float>(pairs * kTile);
      step.own_weights = Take<float>(blocks * kTile);
      step.own_targets = Take<float>(blocks * kTile);
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

  char *begin, *head_end, *end;  // the head is 0 when a call begins
  Step steps[2];                 // the one at hand, and the next
  float* ones;                   // the tiles of weights that are all 1,
  float* positives;              // and of their targets without labels
  float* zeros;                  // a row
  float* tiles;         // dots, then coefficients, of a block's pairs each
  float *mean, *error;  // CBOW: rows, of the contexts and its gradient
  float* old_contexts;  // rows, where there is more than one block

 private:
  template <typename T>
  T* Take(int64_t n) {
    T* const taken = reinterpret_cast<T*>(end);
    end += RoundUp(n * static_cast<int64_t>(sizeof(T)), 64);
    return taken;
  }
};

// ---- the rows of a step -----------------------------------------------------

// m where w is 1 m times and then 0; else -1.
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

// Whether an index is there twice.
HWY_INLINE bool HasRepeats(const int32_t* indices, int64_t n) {
  const D d;
  const hn::RebindToSigned<D> di;
  bool repeats = false;
  ForVectors(n, [&](int64_t i, auto lanes) HWY_ATTR {
    const V bits = lanes.Load(reinterpret_cast<const float*>(indices + i));
    const auto at = hn::BitCast(di, bits);
    auto found = hn::Zero(di);  // minus as often as each is there
    for (int64_t k = 0; k < n; ++k) {
      const auto same = hn::Eq(at, hn::Set(di, indices[k]));
      found = hn::Add(found, hn::VecFromMask(di, same));
    }
    const V often = lanes.Or(hn::ConvertTo(d, found), hn::Zero(d));
    repeats = repeats || !hn::AllTrue(d, hn::Ge(often, hn::Set(d, -1.0f)));
  });
  return repeats;
}

// Calls f(index, weight, target) for each index once, with the sums of the
// weights, and of weights times label(i), of those that name it; not where the
// weights are 0.
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
    // Of a path a part only; of negatives nearly all.
    if (args.labels != nullptr && args.weights[k] == 0) continue;
    PrefetchRow(args.out + args.outputs[k] * args.cols, args.cols);
  }
}

// Outputs of step t.
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
    step.weights = step.own_weights;
    step.targets = step.own_targets;
    const auto label = [&](int64_t k) {
      if (labels != nullptr) return labels[t * n + k];
      return k < args.positives ? 1.0f : 0.0f;
    };
    ForEachRow(indices, weights, n, label,
               [&](int64_t index, float weight, float target) {
                 SetOutput(step.own_weights, count, weight);
                 SetOutput(step.own_targets, count, target);
                 add(index);
               });
    for (int64_t k = count; k < RoundUp(count, kBlock); ++k) {
      SetOutput(step.own_weights, k, 0);
      SetOutput(step.own_targets, k, 0);
    }
  }
  while (count % kBlock != 0) step.outputs[count++] = scratch.zeros;
  step.num_blocks = count / kBlock;
}

// Masks of 1 for a pair, and for its first context alone.
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
          step.masks[m / 2] = step.own_masks + m / 2 * kTile;
          SetContext(step.own_masks + m / 2 * kTile, m % 2, mask);
          ++m;
        });
    if (m % 2 != 0) SetContext(step.own_masks + m / 2 * kTile, 1, 0);
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
  // Words enter at the right end; the others are in the cache. To ask for all
  // 2 window of them costs more than it saves: 3 % on Zen 5.
  for (int64_t j = std::max<int64_t>(0, m - 3); j < m; ++j) {
    PrefetchRow(step.contexts[j], args.cols);
  }
  step.num_contexts = m;
  PrepareOutputs(args, t, scratch, step);
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ONESTEP_KERNELS_CPU_WORD2VEC_WINDOW_STEP_INL_H_
