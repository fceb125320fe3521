// SPDX-License-Identifier: Apache-2.0
// The phases of the hidden-split step (kernels/hidden_split.h) on a block's
// shared memory, from which T1, T2 and T3 are put together. All threads of the
// block call each of them; SyncBlock between two of them is the caller's.
//
// Storage f32, sums f32, x as the bytes it was read as: alpha is applied to the
// sums. kTiles: the block's hidden units in tiles of 8. kParts: bf16 numbers
// that stand for one f32 in the first layer: 3 or 1, on tensor cores, or 0:
// fp32 FMAs. Sums are in an order that depends on sizes only.
//
// At 784 features, batch 32, 8 columns a block, issue slots of an SM (4 a
// clock): forward 49 k-tiles of ~60 and gradient 25 feature blocks of ~80, each
// ~0.3 us with kParts = 3; the other phases are latency, ~0.1 us each.
#ifndef ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_PHASES_CUH_
#define ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_PHASES_CUH_

#include <cstdint>
#include <limits>

#include "kernels/cuda/device.h"
#include "kernels/cuda/hidden_split_layout.h"

namespace onestep::cuda::hidden_split {

using Float2 = dev::Vec<float, 2>;
using Float4 = dev::Vec<float, 4>;
using Word4 = dev::Vec<uint32_t, 4>;

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

ONESTEP_DEVICE int Thread() { return static_cast<int>(dev::ThreadIndex().x); }
ONESTEP_DEVICE int Lane() { return static_cast<int>(dev::Lane()); }
ONESTEP_DEVICE int Warp() { return static_cast<int>(dev::Warp()); }
ONESTEP_DEVICE int Smaller(int a, int b) { return a < b ? a : b; }
ONESTEP_DEVICE int To16(int n) { return (n + 15) & ~15; }

// At a byte offset of the block's shared memory.
template <typename T>
ONESTEP_DEVICE T* At(int offset) {
  return reinterpret_cast<T*>(dev::Shared() + offset);
}
ONESTEP_DEVICE bool Aligned(const void* p, uint32_t to) {
  return reinterpret_cast<uintptr_t>(p) % to == 0;
}

// ---- the step --------------------------------------------------------------
ONESTEP_DEVICE int64_t StepOf(const StepArgs& args) {
  return args.buffers.control->step + args.offset;
}
ONESTEP_DEVICE const int32_t* IndicesOf(const StepArgs& args, int64_t step) {
  return args.buffers.indices + step * args.buffers.indices_stride;
}
// lr / batch of a step.
ONESTEP_DEVICE float ScaleOf(const StepArgs& args, int64_t step) {
  return dev::LoadL2(args.buffers.lr + step * args.buffers.lr_stride) /
         static_cast<float>(args.batch);
}

// ---- own columns of w1 -----------------------------------------------------
// In shared memory w1 is [tile][slot][column % 8]; in each group of 32 features
// slot j * 8 + q has feature 4 q + j: a lane reads 4 features of x at once, and
// then lanes of one warp find their weights in different banks.
ONESTEP_DEVICE int FeatureOf(int slot) {
  return (slot & ~31) + slot % 8 * 4 + slot / 8 % 4;
}

// A slice of w1 [.., hidden]: the part of it that the block holds.
struct W1Slice {
  float* global;  // at the slice's first row and column
  int hidden, features, columns, slots;
  bool vectors;  // rows and columns are in aligned groups of 4

  ONESTEP_DEVICE W1Slice(const StepArgs& args, int column0, int feature0)
      : global(args.buffers.w1 + int64_t{feature0} * args.hidden + column0),
        hidden(args.hidden),
        features(Smaller(args.layout.slots, args.features - feature0)),
        columns(Smaller(args.layout.columns, args.hidden - column0)),
        slots(args.layout.slots),
        vectors(args.hidden % 4 == 0 && Aligned(args.buffers.w1, 16)) {}

  // Group i of 4 columns of one feature, in the order of shared memory; none,
  // zeros, where there is no such feature or column.
  template <int kTiles, typename Each>
  ONESTEP_DEVICE void ForGroup(int i, const Each& each) const {
    const int plane = i / 2;
    const int tile = kTiles > 1 && plane >= slots ? 1 : 0;
    const int feature = FeatureOf(plane - tile * slots);
    const int column = tile * 8 + i % 2 * 4;
    if (feature < features && column < columns) {
      each(global + int64_t{feature} * hidden + column, columns - column);
    }
  }
  template <int kTiles>
  ONESTEP_DEVICE Float4 Load(int i) const {
    Float4 group = {};
    ForGroup<kTiles>(i, [&](float* from, int valid) {
      if (vectors) {
        group = dev::LoadL2(reinterpret_cast<const Float4*>(from));
        return;
      }
      ONESTEP_UNROLL
      for (int j = 0; j < 4; ++j) {
        if (j < valid) group.v[j] = dev::LoadL2(from + j);
      }
    });
    return group;
  }
  template <int kTiles>
  ONESTEP_DEVICE void Store(int i, const Float4& group) const {
    ForGroup<kTiles>(i, [&](float* to, int valid) {
      if (vectors) {
        *reinterpret_cast<Float4*>(to) = group;
        return;
      }
      ONESTEP_UNROLL
      for (int j = 0; j < 4; ++j) {
        if (j < valid) to[j] = group.v[j];
      }
    });
  }
};

// Loads a slice in two halves: what stands between them hides the latency.
template <int kTiles>
class W1Load {
 public:
  ONESTEP_DEVICE explicit W1Load(const W1Slice& slice) : slice_(slice) {
    ONESTEP_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      const int i = Thread() + j * kThreads;
      if (i < Groups()) ahead_[j] = slice_.template Load<kTiles>(i);
    }
  }
  ONESTEP_DEVICE void Finish(float* w1) {
    Float4* to = reinterpret_cast<Float4*>(w1);
    ONESTEP_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      const int i = Thread() + j * kThreads;
      if (i < Groups()) to[i] = ahead_[j];
    }
    for (int i = Thread() + kAhead * kThreads; i < Groups(); i += kThreads) {
      to[i] = slice_.template Load<kTiles>(i);
    }
  }

 private:
  static constexpr int kAhead = 8;
  ONESTEP_DEVICE int Groups() const { return 2 * kTiles * slice_.slots; }

  const W1Slice& slice_;
  Float4 ahead_[kAhead];
};

template <int kTiles>
ONESTEP_DEVICE void StoreW1(const W1Slice& slice, const float* w1) {
  for (int i = Thread(); i < 2 * kTiles * slice.slots; i += kThreads) {
    slice.template Store<kTiles>(i, reinterpret_cast<const Float4*>(w1)[i]);
  }
}

// ---- own rows of w2, own b1 ------------------------------------------------
// From w2 [hidden, classes] and b1 [hidden], either of which may be null:
// zeros, as there are where there is no such hidden unit.
ONESTEP_DEVICE void LoadHead(const StepArgs& args, const float* w2,
                             const float* b1, int column0) {
  const Layout& layout = args.layout;
  const int columns = Smaller(layout.columns, args.hidden - column0);
  for (int i = Thread(); i < layout.columns * args.classes; i += kThreads) {
    const int column = i / args.classes;
    At<float>(layout.w2)[column * layout.w2_stride + i % args.classes] =
        w2 != nullptr && column < columns
            ? dev::LoadL2(w2 + int64_t{column0} * args.classes + i)
            : 0.0f;
  }
  for (int i = Thread(); i < layout.columns; i += kThreads) {
    At<float>(layout.b1)[i] =
        b1 != nullptr && i < columns ? dev::LoadL2(b1 + column0 + i) : 0.0f;
  }
}
// From shared memory, of the layout of w2.
ONESTEP_DEVICE void StoreW2(const StepArgs& args, const float* from,
                            int column0, float* w2) {
  const Layout& layout = args.layout;
  const int columns = Smaller(layout.columns, args.hidden - column0);
  for (int i = Thread(); i < columns * args.classes; i += kThreads) {
    w2[int64_t{column0} * args.classes + i] =
        from[i / args.classes * layout.w2_stride + i % args.classes];
  }
}
ONESTEP_DEVICE void StoreB1(const StepArgs& args, int column0) {
  const int columns = Smaller(args.layout.columns, args.hidden - column0);
  for (int i = Thread(); i < columns; i += kThreads) {
    args.buffers.b1[column0 + i] = At<float>(args.layout.b1)[i];
  }
}
// b2 [classes], between global and shared memory.
ONESTEP_DEVICE void LoadB2(const StepArgs& args, const float* b2) {
  for (int i = Thread(); i < args.classes; i += kThreads) {
    At<float>(args.layout.b2)[i] = dev::LoadL2(b2 + i);
  }
}
ONESTEP_DEVICE void StoreB2(const StepArgs& args, float* b2) {
  for (int i = Thread(); i < args.classes; i += kThreads) {
    b2[i] = At<float>(args.layout.b2)[i];
  }
}

// ---- the batch -------------------------------------------------------------
template <typename T>
ONESTEP_DEVICE void CopyRows(const uint8_t* images, int64_t image_bytes,
                             const int32_t* indices, int rows, int row_bytes,
                             uint8_t* x, int x_stride) {
  const int per_row = row_bytes / static_cast<int>(sizeof(T));
  for (int i = Thread(); i < rows * per_row; i += kThreads) {
    const int row = i / per_row;
    const int column = i - row * per_row;
    const uint8_t* from =
        images + dev::LoadReadOnly(indices + row) * image_bytes;
    reinterpret_cast<T*>(x + row * x_stride)[column] =
        dev::LoadReadOnly(reinterpret_cast<const T*>(from) + column);
  }
}

// x[r] = `features` bytes from `feature0` on of images[indices[r]].
ONESTEP_DEVICE void GatherRows(const StepArgs& args, const int32_t* indices,
                               int rows, int feature0, int features,
                               uint8_t* x) {
  const uint8_t* images = args.buffers.images + feature0;
  const auto copy = [&](auto unit) {
    CopyRows<decltype(unit)>(images, args.features, indices, rows, features, x,
                             args.layout.x_stride);
  };
  const auto fits = [&](uint32_t bytes) {
    return args.features % bytes == 0 && features % bytes == 0 &&
           Aligned(images, bytes);
  };
  if (fits(16)) {
    copy(Word4());
  } else if (fits(4)) {
    copy(uint32_t());
  } else {
    copy(uint8_t());
  }
}

// The zeros of x that no gather writes: past the features and past the rows.
ONESTEP_DEVICE void ZeroPads(const Layout& layout, int rows, int features,
                             uint8_t* x) {
  const int pad = layout.x_stride - features;
  for (int i = Thread(); i < rows * pad; i += kThreads) {
    x[i / pad * layout.x_stride + features + i % pad] = 0;
  }
  const int words = (layout.rows - rows) * layout.x_stride / 16;
  Word4* to = reinterpret_cast<Word4*>(x + rows * layout.x_stride);
  for (int i = Thread(); i < words; i += kThreads) to[i] = Word4();
}

ONESTEP_DEVICE void GatherLabels(const StepArgs& args, const int32_t* indices,
                                 int rows, int32_t* labels) {
  for (int i = Thread(); i < rows; i += kThreads) {
    labels[i] =
        dev::LoadReadOnly(args.buffers.labels + dev::LoadReadOnly(indices + i));
  }
}

// ---- bf16 ------------------------------------------------------------------
// A byte of a word as a number, which bf16 has exactly.
ONESTEP_DEVICE float Byte(uint32_t word, int i) {
  return static_cast<float>((word >> (8 * i)) & 0xff);
}

// Each part is the rounding of what the parts before it left: with three the
// sum has the 24 bits of f32. parts[p] is the pair (low, high) of part p.
template <int kParts>
ONESTEP_DEVICE void Split(float low, float high, uint32_t parts[kParts]) {
  ONESTEP_UNROLL
  for (int p = 0; p < kParts; ++p) {
    parts[p] = dev::PackBf16(low, high);
    low -= dev::Bf16ToFloat(parts[p]);
    high -= dev::Bf16ToFloat(parts[p] >> 16);
  }
}
// The sum over parts of one element of the accumulators, small ones first.
template <int kParts>
ONESTEP_DEVICE float Joined(const float sums[kParts][4], int i) {
  float sum = sums[kParts - 1][i];
  ONESTEP_UNROLL
  for (int p = kParts - 2; p >= 0; --p) sum += sums[p][i];
  return sum;
}

// ---- h = act(alpha x w1 + b1) ----------------------------------------------
// Each warp takes every kWarps-th group of 16 features and sums over them for
// up to kChunkRows rows: sums[warp][row][column]. Of the mma, A is [row,
// feature], and lane t of 4 has features 4 t.. 4 t + 3 where the fragment says
// 2 t, 2 t + 1, 2 t + 8, 2 t + 9: for A and B alike, so one word of x is
// enough.
template <int kTiles, int kParts>
ONESTEP_DEVICE void SumFeaturesMma(const Layout& layout, const uint8_t* x,
                                   int rows, int features) {
  constexpr int kColumns = 8 * kTiles;
  const int g = Lane() / 4, t = Lane() % 4;
  const float* w1 = At<float>(layout.w1);
  float acc[2][kTiles][kParts][4] = {};
  for (int k = Warp() * 16; k < features; k += kWarps * 16) {
    uint32_t a[2][4] = {};
    ONESTEP_UNROLL
    for (int m = 0; m < 2; ++m) {
      if (m * 16 >= rows) break;
      const uint8_t* at = x + (m * 16 + g) * layout.x_stride + k + 4 * t;
      ONESTEP_UNROLL
      for (int half = 0; half < 2; ++half) {
        const uint32_t word =
            *reinterpret_cast<const uint32_t*>(at + half * 8 * layout.x_stride);
        a[m][half] = dev::PackBf16(Byte(word, 0), Byte(word, 1));
        a[m][half + 2] = dev::PackBf16(Byte(word, 2), Byte(word, 3));
      }
    }
    ONESTEP_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      const int slot = tile * layout.slots + (k & ~31) + k % 32 / 4 + t;
      const float* w = w1 + slot * 8 + g;
      uint32_t low[kParts], high[kParts];
      Split<kParts>(w[0], w[64], low);
      Split<kParts>(w[128], w[192], high);
      ONESTEP_UNROLL
      for (int p = 0; p < kParts; ++p) {
        const uint32_t b[2] = {low[p], high[p]};
        ONESTEP_UNROLL
        for (int m = 0; m < 2; ++m) {
          if (m * 16 < rows) dev::MmaBf16(acc[m][tile][p], a[m], b);
        }
      }
    }
  }
  float* sums = At<float>(layout.sums) + Warp() * kChunkRows * kColumns;
  ONESTEP_UNROLL
  for (int m = 0; m < 2; ++m) {
    ONESTEP_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      ONESTEP_UNROLL
      for (int half = 0; half < 2; ++half) {
        const Float2 pair = {Joined<kParts>(acc[m][tile], 2 * half),
                             Joined<kParts>(acc[m][tile], 2 * half + 1)};
        const int row = m * 16 + half * 8 + g;
        *reinterpret_cast<Float2*>(sums + row * kColumns + tile * 8 + 2 * t) =
            pair;
      }
    }
  }
}

// The same by FMAs: a lane has a row.
template <int kTiles>
ONESTEP_DEVICE void SumFeaturesFma(const Layout& layout, const uint8_t* x,
                                   int rows, int features) {
  constexpr int kColumns = 8 * kTiles;
  if (Lane() >= rows) return;
  const Float4* w1 = At<Float4>(layout.w1);
  float acc[kColumns] = {};
  for (int k = Warp() * 16; k < features; k += kWarps * 16) {
    const Word4 words =
        *reinterpret_cast<const Word4*>(x + Lane() * layout.x_stride + k);
    ONESTEP_UNROLL
    for (int i = 0; i < 16; ++i) {
      const float value = Byte(words.v[i / 4], i % 4);
      const int slot = (k & ~31) + i % 4 * 8 + k % 32 / 4 + i / 4;
      ONESTEP_UNROLL
      for (int q = 0; q < kColumns / 4; ++q) {
        const Float4 w = w1[(q / 2 * layout.slots + slot) * 2 + q % 2];
        ONESTEP_UNROLL
        for (int j = 0; j < 4; ++j) {
          acc[4 * q + j] = dev::Fma(value, w.v[j], acc[4 * q + j]);
        }
      }
    }
  }
  Float4* sums =
      At<Float4>(layout.sums) + (Warp() * kChunkRows + Lane()) * (kColumns / 4);
  ONESTEP_UNROLL
  for (int q = 0; q < kColumns / 4; ++q) {
    sums[q] = {acc[4 * q], acc[4 * q + 1], acc[4 * q + 2], acc[4 * q + 3]};
  }
}

// Not a number stays that: it has to reach the loss.
ONESTEP_DEVICE float Activated(Act act, float v) {
  switch (act) {
    case Act::kRelu:
      return v > 0 || v != v ? v : 0.0f;
    case Act::kTanh:
      return dev::Tanh(v);
    case Act::kSigmoid:
      return 1.0f / (1.0f + dev::Exp(-v));
    default:
      return v;
  }
}
// The gradient, times v, from the result h.
ONESTEP_DEVICE float ActivatedGrad(Act act, float h, float v) {
  switch (act) {
    case Act::kRelu:
      return h > 0 ? v : 0.0f;
    case Act::kTanh:
      return v * (1.0f - h * h);
    case Act::kSigmoid:
      return v * (h * (1.0f - h));
    default:
      return v;
  }
}

// h[rows, columns] in shared memory; zeros in the columns that the block does
// not have. Ends with a SyncBlock.
template <int kTiles, int kParts>
ONESTEP_DEVICE void ForwardHidden(const StepArgs& args, const uint8_t* x,
                                  int rows, int columns) {
  constexpr int kColumns = 8 * kTiles;
  const Layout& layout = args.layout;
  const float* sums = At<float>(layout.sums);
  for (int row0 = 0; row0 < To16(rows); row0 += kChunkRows) {
    const int chunk = Smaller(kChunkRows, To16(rows) - row0);
    const uint8_t* chunk_x = x + row0 * layout.x_stride;
    if constexpr (kParts == 0) {
      SumFeaturesFma<kTiles>(layout, chunk_x, chunk, args.features);
    } else {
      SumFeaturesMma<kTiles, kParts>(layout, chunk_x, chunk, args.features);
    }
    dev::SyncBlock();
    for (int i = Thread(); i < chunk * kColumns; i += kThreads) {
      const int column = i % kColumns;
      float sum = 0;
      ONESTEP_UNROLL
      for (int warp = 0; warp < kWarps; ++warp) {
        sum += sums[warp * kChunkRows * kColumns + i];
      }
      const float z = dev::Fma(args.alpha, sum, At<float>(layout.b1)[column]);
      At<float>(layout.h)[row0 * kColumns + i] =
          column < columns ? Activated(args.act, z) : 0.0f;
    }
    dev::SyncBlock();
  }
}

// partials[rows, classes] = h w2, over own columns.
template <int kTiles>
ONESTEP_DEVICE void PartialLogits(const StepArgs& args, int rows,
                                  float* partials) {
  constexpr int kColumns = 8 * kTiles;
  const Layout& layout = args.layout;
  const int lanes = layout.class_lanes;
  for (int i = Thread(); i < rows * lanes; i += kThreads) {
    const int row = i / lanes, c = i & (lanes - 1);
    if (c >= args.classes) continue;
    const Float4* h = At<Float4>(layout.h) + row * (kColumns / 4);
    const float* w2 = At<float>(layout.w2) + c;
    float sum = 0;
    ONESTEP_UNROLL
    for (int q = 0; q < kColumns / 4; ++q) {
      const Float4 group = h[q];
      ONESTEP_UNROLL
      for (int j = 0; j < 4; ++j) {
        sum = dev::Fma(group.v[j], w2[(4 * q + j) * layout.w2_stride], sum);
      }
    }
    partials[row * args.classes + c] = sum;
  }
}

// ---- loss and its gradient -------------------------------------------------
struct LossGradRows {
  const float* partials;  // [blocks][rows, classes], blocks `stride` apart
  int64_t stride;         // floats
  const float* b2;        // [classes]
  const int32_t* labels;  // [rows]
  float scale;            // lr / batch
  int rows;               // of them; d has zeros up to padded_rows
  int padded_rows;
  float* d;            // [padded_rows, classes]
  float* row_loss;     // [rows]
  float* row_correct;  // [rows]: 1 or 0
};

// `class_lanes` lanes have a row, one class each. kGlobal: the partials are in
// global memory.
template <bool kGlobal>
ONESTEP_DEVICE void LossGrad(const StepArgs& args, const LossGradRows& io) {
  const int lanes = args.layout.class_lanes;
  const int c = Thread() & (lanes - 1);
  for (int row0 = 0; row0 < io.padded_rows; row0 += kThreads / lanes) {
    const int row = row0 + Thread() / lanes;
    const bool here = row < io.rows && c < args.classes;
    float z = -kInfinity;
    int label = 0;
    if (here) {
      label = io.labels[row];
      z = 0;
      const float* p = io.partials + row * args.classes + c;
      for (int block = 0; block < args.blocks; ++block, p += io.stride) {
        z += kGlobal ? dev::LoadL2(p) : *p;
      }
      z += io.b2[c];
    }
    float largest = z;
    for (int mask = lanes / 2; mask > 0; mask /= 2) {
      largest = dev::Max(largest, dev::ShuffleXor(largest, mask));
    }
    const float exp = here ? dev::Exp(z - largest) : 0.0f;
    // One that is not finite, or as large as the largest and before the label.
    int32_t wrong =
        here && (!(z - z == 0) || (z == largest && c < label)) ? 1 : 0;
    float total = exp;
    for (int mask = lanes / 2; mask > 0; mask /= 2) {
      total += dev::ShuffleXor(total, mask);
      wrong += dev::ShuffleXor(wrong, mask);
    }
    if (here && c == label) {
      io.row_loss[row] = dev::Log(total) - (z - largest);
      io.row_correct[row] = wrong == 0 && z == largest ? 1.0f : 0.0f;
    }
    if (row < io.padded_rows && c < args.classes) {
      const float hot = c == label ? 1.0f : 0.0f;
      io.d[row * args.classes + c] =
          here ? io.scale * (hot - exp / total) : 0.0f;
    }
  }
}

// The sum of v[rows], by one warp.
template <bool kGlobal>
ONESTEP_DEVICE float SumRows(const float* v, int rows) {
  float sum = 0;
  for (int row = Lane(); row < rows; row += 32) {
    sum += kGlobal ? dev::LoadL2(v + row) : v[row];
  }
  for (int mask = 16; mask > 0; mask /= 2) sum += dev::ShuffleXor(sum, mask);
  return sum;
}

// The results of a step, by one warp; lane 0 writes them.
template <bool kGlobal>
ONESTEP_DEVICE void WriteResults(const StepArgs& args, int64_t step,
                                 const float* row_loss,
                                 const float* row_correct) {
  const HiddenSplitBuffers& buffers = args.buffers;
  const float loss = SumRows<kGlobal>(row_loss, args.batch);
  const float correct = SumRows<kGlobal>(row_correct, args.batch);
  if (Lane() != 0) return;
  if (buffers.loss != nullptr) {
    buffers.loss[step * buffers.loss_stride] =
        loss / static_cast<float>(args.batch);
  }
  if (buffers.correct != nullptr) {
    buffers.correct[step * buffers.correct_stride] = correct;
  }
}

// ---- gradients and updates -------------------------------------------------
// e = (d w2^T) act'(h), and where kParts > 0 also its parts, in pairs of rows.
template <int kTiles, int kParts>
ONESTEP_DEVICE void HiddenGrad(const StepArgs& args, int rows) {
  constexpr int kColumns = 8 * kTiles;
  const Layout& layout = args.layout;
  for (int i = Thread(); i < To16(rows) * kColumns; i += kThreads) {
    const int row = i / kColumns, column = i % kColumns;
    const float* d = At<float>(layout.d) + row * args.classes;
    const float* w2 = At<float>(layout.w2) + column * layout.w2_stride;
    float sum = 0;
    for (int c = 0; c < args.classes; ++c) sum = dev::Fma(d[c], w2[c], sum);
    const float e = ActivatedGrad(args.act, At<float>(layout.h)[i], sum);
    At<float>(layout.e)[i] = e;
    if constexpr (kParts > 0) {
      const float below = dev::ShuffleXor(e, kColumns);
      if (row % 2 == 0) {
        uint32_t parts[kParts];
        Split<kParts>(e, below, parts);
        const int pairs = layout.rows / 2;
        ONESTEP_UNROLL
        for (int p = 0; p < kParts; ++p) {
          const int plane = (p * kTiles + column / 8) * pairs + row / 2;
          At<uint32_t>(layout.parts)[plane * 8 + column % 8] = parts[p];
        }
      }
    }
  }
}

// w2 += h^T d, b1 += sum e, b2 += sum d: two lanes have a sum over the rows.
template <int kTiles>
ONESTEP_DEVICE void UpdateHead(const StepArgs& args, int rows, float* w2) {
  constexpr int kColumns = 8 * kTiles;
  const Layout& layout = args.layout;
  const float* h = At<float>(layout.h);
  const float* d = At<float>(layout.d);
  const float* e = At<float>(layout.e);
  const int of_w2 = kColumns * args.classes;
  const int all = of_w2 + kColumns + args.classes;
  const int half = Thread() % 2;
  for (int base = Warp() * 16; base < all; base += kThreads / 2) {
    const int i = base + Lane() / 2;
    float sum = 0;
    float* to = nullptr;
    if (i < of_w2) {
      const int column = i / args.classes, c = i - column * args.classes;
      to = w2 + column * layout.w2_stride + c;
      for (int row = half; row < rows; row += 2) {
        sum = dev::Fma(h[row * kColumns + column], d[row * args.classes + c],
                       sum);
      }
    } else if (i < all) {
      const bool is_b1 = i < of_w2 + kColumns;
      const int at = i - of_w2 - (is_b1 ? 0 : kColumns);
      const int stride = is_b1 ? kColumns : args.classes;
      to = At<float>(is_b1 ? layout.b1 : layout.b2) + at;
      const float* from = (is_b1 ? e : d) + at;
      for (int row = half; row < rows; row += 2) sum += from[row * stride];
    }
    sum += dev::ShuffleXor(sum, 1);
    if (to != nullptr && half == 0) *to += sum;
  }
}

// w1 += alpha x^T e on tensor cores: a warp takes 32 features at a time. Of the
// mma, A is [feature, row]; a word of x has 4 features of a row, so lane g has
// features 4 g.. 4 g + 3, two for each of two mmas.
template <int kTiles, int kParts>
ONESTEP_DEVICE void UpdateFirstMma(const StepArgs& args, const uint8_t* x,
                                   int rows) {
  const Layout& layout = args.layout;
  const int g = Lane() / 4, t = Lane() % 4;
  const int padded = To16(rows), pairs = layout.rows / 2;
  for (int row0 = 0; row0 < padded; row0 += 32) {
    const int halves = padded - row0 > 16 ? 2 : 1;
    uint32_t b[2][kTiles][kParts][2] = {};
    ONESTEP_UNROLL
    for (int half = 0; half < 2; ++half) {
      if (half >= halves) break;
      ONESTEP_UNROLL
      for (int p = 0; p < kParts; ++p) {
        ONESTEP_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          const int plane = (p * kTiles + tile) * pairs + row0 / 2 + half * 8;
          const uint32_t* from =
              At<uint32_t>(layout.parts) + (plane + t) * 8 + g;
          b[half][tile][p][0] = from[0];
          b[half][tile][p][1] = from[32];
        }
      }
    }
    for (int slot0 = Warp() * 32; slot0 < layout.slots; slot0 += kWarps * 32) {
      float acc[2][kTiles][kParts][4] = {};
      ONESTEP_UNROLL
      for (int half = 0; half < 2; ++half) {
        if (half >= halves) break;
        const uint8_t* at =
            x + (row0 + half * 16 + 2 * t) * layout.x_stride + slot0 + 4 * g;
        uint32_t words[4];  // of rows 2 t, 2 t + 1, 2 t + 8, 2 t + 9
        ONESTEP_UNROLL
        for (int i = 0; i < 4; ++i) {
          words[i] = *reinterpret_cast<const uint32_t*>(
              at + (i / 2 * 8 + i % 2) * layout.x_stride);
        }
        ONESTEP_UNROLL
        for (int m = 0; m < 2; ++m) {
          uint32_t a[4];
          ONESTEP_UNROLL
          for (int i = 0; i < 4; ++i) {
            const int byte = 2 * m + i % 2, pair = i / 2 * 2;
            a[i] = dev::PackBf16(Byte(words[pair], byte),
                                 Byte(words[pair + 1], byte));
          }
          ONESTEP_UNROLL
          for (int tile = 0; tile < kTiles; ++tile) {
            ONESTEP_UNROLL
            for (int p = 0; p < kParts; ++p) {
              dev::MmaBf16(acc[m][tile][p], a, b[half][tile][p]);
            }
          }
        }
      }
      ONESTEP_UNROLL
      for (int tile = 0; tile < kTiles; ++tile) {
        ONESTEP_UNROLL
        for (int j = 0; j < 4; ++j) {  // feature 4 g + j
          const int slot = tile * layout.slots + slot0 + j * 8 + g;
          Float2* w = At<Float2>(layout.w1) + slot * 4 + t;
          Float2 pair = *w;
          ONESTEP_UNROLL
          for (int i = 0; i < 2; ++i) {
            const float sum = Joined<kParts>(acc[j / 2][tile], j % 2 * 2 + i);
            pair.v[i] = dev::Fma(args.alpha, sum, pair.v[i]);
          }
          *w = pair;
        }
      }
    }
  }
}

// The same by FMAs: a thread has 4 features and kWide columns.
template <int kTiles, int kWide>
ONESTEP_DEVICE void UpdateFirstFma(const StepArgs& args, const uint8_t* x,
                                   int rows) {
  constexpr int kColumns = 8 * kTiles;
  constexpr int kGroups = kColumns / kWide;
  constexpr int kVec = kWide < 4 ? kWide : 4;
  using Vec = dev::Vec<float, kVec>;
  const Layout& layout = args.layout;
  for (int i = Thread(); i < layout.slots / 4 * kGroups; i += kThreads) {
    const int q = i / kGroups, column0 = i % kGroups * kWide;
    float acc[4][kWide] = {};
    for (int row = 0; row < rows; ++row) {
      const uint32_t word =
          *reinterpret_cast<const uint32_t*>(x + row * layout.x_stride + 4 * q);
      const Vec* e = reinterpret_cast<const Vec*>(At<float>(layout.e) +
                                                  row * kColumns + column0);
      ONESTEP_UNROLL
      for (int v = 0; v < kWide / kVec; ++v) {
        const Vec group = e[v];
        ONESTEP_UNROLL
        for (int k = 0; k < kVec; ++k) {
          ONESTEP_UNROLL
          for (int j = 0; j < 4; ++j) {
            float& sum = acc[j][v * kVec + k];
            sum = dev::Fma(Byte(word, j), group.v[k], sum);
          }
        }
      }
    }
    ONESTEP_UNROLL
    for (int j = 0; j < 4; ++j) {
      const int slot =
          column0 / 8 * layout.slots + (4 * q & ~31) + j * 8 + q % 8;
      Vec* w =
          reinterpret_cast<Vec*>(At<float>(layout.w1) + slot * 8 + column0 % 8);
      ONESTEP_UNROLL
      for (int v = 0; v < kWide / kVec; ++v) {
        Vec group = w[v];
        ONESTEP_UNROLL
        for (int k = 0; k < kVec; ++k) {
          group.v[k] = dev::Fma(args.alpha, acc[j][v * kVec + k], group.v[k]);
        }
        w[v] = group;
      }
    }
  }
}

template <int kTiles, int kParts, int kWide>
ONESTEP_DEVICE void UpdateFirst(const StepArgs& args, const uint8_t* x,
                                int rows) {
  if constexpr (kParts == 0) {
    UpdateFirstFma<kTiles, kWide>(args, x, rows);
  } else {
    UpdateFirstMma<kTiles, kParts>(args, x, rows);
  }
}

}  // namespace onestep::cuda::hidden_split

#endif  // ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_PHASES_CUH_
