// SPDX-License-Identifier: Apache-2.0
// Loads and stores between global and shared memory for a block of the
// hidden-split step (kernels/cuda/hidden_split/hidden_split.h). All threads of
// the block call each function; the caller calls SyncBlock after it.
#ifndef ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_MEMORY_CUH_
#define ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_MEMORY_CUH_

#include <cstdint>

#include "kernels/cuda/device.h"
#include "kernels/cuda/hidden_split/layout.h"

namespace onestep::cuda::hidden_split {

using Float2 = dev::Vec<float, 2>;
using Float4 = dev::Vec<float, 4>;
using Word4 = dev::Vec<uint32_t, 4>;

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
// The arguments with the operands of this block's model.
ONESTEP_DEVICE StepArgs OfModel(StepArgs args) {
  const int64_t model = dev::BlockIndex().z;
  const auto shift = [model](auto*& p, int64_t floats) {
    if (p != nullptr) p += model * floats;
  };
  HiddenSplitBuffers& buffers = args.buffers;
  shift(buffers.lr, 1);
  shift(buffers.w1, int64_t{args.features} * args.hidden);
  shift(buffers.b1, args.hidden);
  shift(buffers.w2, int64_t{args.hidden} * args.classes);
  shift(buffers.b2, args.classes);
  shift(buffers.loss, 1);
  shift(buffers.correct, 1);
  Workspace& w = args.workspace;
  shift(w.partials, args.workspace_floats);
  shift(w.hidden, args.workspace_floats);
  shift(w.dlogits, args.workspace_floats);
  shift(w.row_loss, args.workspace_floats);
  shift(w.row_correct, args.workspace_floats);
  shift(w.old_w2, args.workspace_floats);
  return args;
}
ONESTEP_DEVICE int64_t StepOf(const StepArgs& args) {
  return args.buffers.control->step + args.offset;
}
ONESTEP_DEVICE const int32_t* IndicesOf(const StepArgs& args, int64_t step) {
  return args.buffers.indices + step * args.buffers.indices_stride;
}
ONESTEP_DEVICE float LearningRateOf(const StepArgs& args, int64_t step) {
  return dev::LoadL2(args.buffers.lr + step * args.buffers.lr_stride);
}

// ---- the block's columns of w1 ---------------------------------------------
// In shared memory w1 is [tile][slot][column % 8], and in each group of 32
// features slot j * 8 + q has feature 4 q + j. A lane reads 4 features of x at
// once; in this order the lanes of a warp then read weights from different
// banks.
ONESTEP_DEVICE int FeatureOf(int slot) {
  return (slot & ~31) + slot % 8 * 4 + slot / 8 % 4;
}

// *p where it is valid, else zero. There is no branch, because the compiler
// would wait for the load at the branch's end.
template <typename T>
ONESTEP_DEVICE T LoadOrZero(bool valid, const T* p, const T* always_valid) {
  const T value = dev::LoadL2(valid ? p : always_valid);
  return valid ? value : T();
}

// The slice of w1 [.., hidden] that the block holds.
struct W1Slice {
  float* w1;
  int64_t first;  // element of w1
  int hidden, features, columns, slots;
  bool vectors;  // rows and columns are in aligned groups of 4

  ONESTEP_DEVICE W1Slice(const StepArgs& args, int column0, int feature0)
      : w1(args.buffers.w1),
        first(int64_t{feature0} * args.hidden + column0),
        hidden(args.hidden),
        features(Smaller(args.layout.slots, args.features - feature0)),
        columns(Smaller(args.layout.columns, args.hidden - column0)),
        slots(args.layout.slots),
        vectors(args.hidden % 4 == 0 && Aligned(args.buffers.w1, 16)) {}

  // Group i of 4 columns of one feature, in the order of shared memory.
  struct Group {
    int64_t at;  // element of w1
    int valid;   // columns that there are, from the first; may be negative
  };
  template <int kTiles>
  ONESTEP_DEVICE Group Find(int i) const {
    const int plane = i / 2;
    const int tile = kTiles > 1 && plane >= slots ? 1 : 0;
    const int feature = FeatureOf(plane - tile * slots);
    const int column = tile * 8 + i % 2 * 4;
    return {first + int64_t{feature} * hidden + column,
            feature < features ? columns - column : 0};
  }
  // Zeros where there is no such feature or column. REQUIRES: vectors.
  template <int kTiles>
  ONESTEP_DEVICE Float4 LoadVector(int i) const {
    const Group group = Find<kTiles>(i);
    return LoadOrZero(group.valid > 0,
                      reinterpret_cast<const Float4*>(w1 + group.at),
                      reinterpret_cast<const Float4*>(w1));
  }
  template <int kTiles>
  ONESTEP_DEVICE Float4 LoadScalars(int i) const {
    const Group group = Find<kTiles>(i);
    Float4 values;
    ONESTEP_UNROLL
    for (int j = 0; j < 4; ++j) {
      values.v[j] = LoadOrZero(j < group.valid, w1 + group.at + j, w1);
    }
    return values;
  }
  template <int kTiles>
  ONESTEP_DEVICE void Store(int i, const Float4& values) const {
    const Group group = Find<kTiles>(i);
    if (group.valid <= 0) return;
    if (vectors) {
      *reinterpret_cast<Float4*>(w1 + group.at) = values;
      return;
    }
    ONESTEP_UNROLL
    for (int j = 0; j < 4; ++j) {
      if (j < group.valid) w1[group.at + j] = values.v[j];
    }
  }
};

// Loads an array into registers and stores it later. Thread i % kThreads loads
// element i, kAhead elements at a time, the first ones in Begin: whatever runs
// between Begin and Finish, such as other loads, hides their latency.
template <typename T, int kAhead>
class Ahead {
 public:
  // Past the end it loads the last element again, which needs no branch.
  // REQUIRES: n >= 1.
  template <typename Load>
  ONESTEP_DEVICE void Begin(int n, const Load& load, int first = 0) {
    ONESTEP_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      values_[j] = load(Smaller(first + Thread() + j * kThreads, n - 1));
    }
  }
  // REQUIRES: n and load are those of Begin.
  template <typename Load, typename Store>
  ONESTEP_DEVICE void Finish(int n, const Load& load, const Store& store) {
    Put(n, store, 0);
    for (int first = kAhead * kThreads; first < n; first += kAhead * kThreads) {
      Begin(n, load, first);
      Put(n, store, first);
    }
  }

 private:
  template <typename Store>
  ONESTEP_DEVICE void Put(int n, const Store& store, int first) {
    ONESTEP_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      const int i = first + Thread() + j * kThreads;
      if (i < n) store(i, values_[j]);
    }
  }

  T values_[kAhead] = {};
};

template <int kTiles>
class W1Load {
 public:
  ONESTEP_DEVICE explicit W1Load(const W1Slice& slice)
      : slice_(slice), groups_(2 * kTiles * slice.slots) {
    if (!slice_.vectors) return;
    ahead_.Begin(groups_,
                 [&](int i) { return slice_.template LoadVector<kTiles>(i); });
  }
  ONESTEP_DEVICE void Finish(float* w1) {
    Float4* to = reinterpret_cast<Float4*>(w1);
    if (slice_.vectors) {
      ahead_.Finish(
          groups_, [&](int i) { return slice_.template LoadVector<kTiles>(i); },
          [&](int i, const Float4& values) { to[i] = values; });
      return;
    }
    for (int i = Thread(); i < groups_; i += kThreads) {
      to[i] = slice_.template LoadScalars<kTiles>(i);
    }
  }

 private:
  const W1Slice& slice_;
  const int groups_;
  Ahead<Float4, 4> ahead_;
};

template <int kTiles>
ONESTEP_DEVICE void StoreW1(const W1Slice& slice, const float* w1) {
  for (int i = Thread(); i < 2 * kTiles * slice.slots; i += kThreads) {
    slice.template Store<kTiles>(i, reinterpret_cast<const Float4*>(w1)[i]);
  }
}

// ---- the block's rows of w2 and its part of b1 -----------------------------
// Loads from w2 [hidden, classes], b1 [hidden] and b2 [classes]. A null b1 or
// b2 gives zeros, and so does a hidden unit past the last.
class HeadLoad {
 public:
  ONESTEP_DEVICE HeadLoad(const StepArgs& args, const float* w2,
                          const float* b1, const float* b2, int column0)
      : args_(args),
        w2_(w2 + int64_t{column0} * args.classes),
        columns_(Smaller(args.layout.columns, args.hidden - column0)) {
    ahead_.Begin(Size(), [&](int i) { return W2(i); });
    const bool has_b1 = b1 != nullptr && Thread() < columns_;
    b1_ = has_b1 ? dev::LoadL2(b1 + column0 + Thread()) : 0.0f;
    const bool has_b2 = b2 != nullptr && Thread() < args.classes;
    b2_ = has_b2 ? dev::LoadL2(b2 + Thread()) : 0.0f;
  }
  ONESTEP_DEVICE void Finish() {
    const Layout& layout = args_.layout;
    ahead_.Finish(
        Size(), [&](int i) { return W2(i); },
        [&](int i, float v) {
          const int column = i / args_.classes, c = i % args_.classes;
          At<float>(layout.w2)[column * layout.w2_stride + c] = v;
        });
    if (Thread() < layout.columns) At<float>(layout.b1)[Thread()] = b1_;
    if (Thread() < args_.classes) At<float>(layout.b2)[Thread()] = b2_;
  }

 private:
  ONESTEP_DEVICE int Size() const {
    return args_.layout.columns * args_.classes;
  }
  ONESTEP_DEVICE float W2(int i) const {
    return LoadOrZero(i < columns_ * args_.classes, w2_ + i, args_.buffers.w2);
  }

  const StepArgs& args_;
  const float* const w2_;
  const int columns_;
  Ahead<float, 1> ahead_;
  float b1_, b2_;
};

// Stores the block's rows of w2; `from` is in shared memory, laid out like w2.
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
  const auto load = [&](int i) {
    const int row = i / per_row;
    const uint8_t* from =
        images + dev::LoadReadOnly(indices + row) * image_bytes;
    return dev::LoadReadOnly(reinterpret_cast<const T*>(from) +
                             (i - row * per_row));
  };
  Ahead<T, 4> ahead;
  ahead.Begin(rows * per_row, load);
  ahead.Finish(rows * per_row, load, [&](int i, const T& value) {
    const int row = i / per_row;
    reinterpret_cast<T*>(x + row * x_stride)[i - row * per_row] = value;
  });
}

// x[r] = the `features` bytes of images[indices[r]] that begin at `feature0`.
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

// Writes the zeros of x that no gather writes: past the features and past the
// rows.
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

}  // namespace onestep::cuda::hidden_split

#endif  // ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_MEMORY_CUH_
