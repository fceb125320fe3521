// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/sparse.h"

#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sparse.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onestep::cpu::HWY_NAMESPACE {

// The maximal width of a column panel in vectors; three rows of weights of a
// panel must fit the registers.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kMaxVecs = 8;
#else
constexpr int kMaxVecs = 3;
#endif

// The number of columns of x whose bytes share a word. Strokes are a few pixels
// wide: with three columns, MNIST has 0.44 words per nonzero, and each word
// costs one load of a row of y or dz. Four columns are as fast, two and one are
// slower. Measured on Zen 5.
constexpr int64_t kTriple = 3;

// ---- GatherSparse -----------------------------------------------------------

// kSquare columns are transposed in registers at a time; kBlock columns, a
// multiple of kTriple, are transposed before their segments are written.
constexpr int64_t kSquare = 16;
constexpr int64_t kBlock = kSquare * kTriple;
// The number of bytes of a row to prefetch ahead, because the table is larger
// than the caches. Measured on Zen 5 with 784 columns of a 47 MB table: saves
// 1 us for 32 rows.
constexpr int64_t kAhead = 256;
constexpr int64_t kCacheLine = 64;

// The addresses of a group's rows, from some column on. In a group of fewer
// rows the missing ones repeat a row that exists.
struct Group {
  const uint8_t* row[kSparseRows];
};

#if HWY_TARGET != HWY_SCALAR
// A vector that holds one column's bytes of all rows of a group, or of half of
// the rows.
using DColumn = hn::CappedTag<uint8_t, kSparseRows>;
using VColumn = hn::Vec<DColumn>;
constexpr int64_t kColumnBytes = hn::MaxLanes(DColumn());

// Loads kSquare bytes of a row. If the vector has room for two rows, the upper
// half is loaded from row + kSquare.
HWY_INLINE VColumn LoadRows(const Group& group, int64_t row, int64_t c) {
  const hn::FixedTag<uint8_t, kSquare> d;
  const auto low = hn::LoadU(d, group.row[row] + c);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  const auto high = hn::LoadU(d, group.row[row + kSquare] + c);
  return hn::Combine(DColumn(), high, low);
#else
  return low;
#endif
}

// A perfect shuffle (interleaving) of the rows; four of them transpose a 16x16
// matrix.
HWY_INLINE void Shuffle(const VColumn (&from)[kSquare],
                        VColumn (&to)[kSquare]) {
  constexpr int kHalf = kSquare / 2;
  HWY_UNROLL(8)
  for (int i = 0; i < kHalf; ++i) {
    to[2 * i] = hn::InterleaveLower(DColumn(), from[i], from[i + kHalf]);
    to[2 * i + 1] = hn::InterleaveUpper(DColumn(), from[i], from[i + kHalf]);
  }
}
#endif

// bytes[kSquare,kSparseRows] = columns [c, c + kSquare) of the group,
// transposed.
HWY_INLINE void TransposeSquare(const Group& group, int64_t c,
                                uint8_t* HWY_RESTRICT bytes) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t r = 0; r < kSparseRows; ++r) {
    for (int64_t i = 0; i < kSquare; ++i) {
      bytes[i * kSparseRows + r] = group.row[r][c + i];
    }
  }
#else
  for (int64_t first = 0; first < kSparseRows; first += kColumnBytes) {
    VColumn a[kSquare], b[kSquare];
    HWY_UNROLL(16)
    for (int64_t r = 0; r < kSquare; ++r) a[r] = LoadRows(group, first + r, c);
    Shuffle(a, b);
    Shuffle(b, a);
    Shuffle(a, b);
    Shuffle(b, a);
    HWY_UNROLL(16)
    for (int64_t i = 0; i < kSquare; ++i) {
      hn::StoreU(a[i], DColumn(), bytes + i * kSparseRows + first);
    }
  }
#endif
}

// TransposeSquare for the last columns of a table; reads nothing past column
// cols.
HWY_NOINLINE void TransposeLast(const Group& group, int64_t c, int64_t cols,
                                uint8_t* HWY_RESTRICT bytes) {
  uint8_t padded[kSparseRows][kSquare] = {};
  Group last;
  for (int64_t r = 0; r < kSparseRows; ++r) {
    std::memcpy(padded[r], group.row[r] + c, static_cast<size_t>(cols - c));
    last.row[r] = padded[r];
  }
  TransposeSquare(last, 0, bytes);
}

// Writes each nonzero words[r] as words[r] | r << 24 to `to`, in order, and
// returns their number. May write up to a full vector past them.
HWY_INLINE int64_t KeepNonzeros(const int32_t* HWY_RESTRICT words, int64_t rows,
                                int32_t* HWY_RESTRICT to) {
  int64_t count = 0;
#if HWY_TARGET == HWY_AVX3
  const hn::Rebind<int32_t, D> d;
  for (int64_t r = 0; r < kSparseRows; r += kLanes) {
    const auto word = hn::LoadU(d, words + r);
    const auto row = hn::Iota(d, static_cast<int32_t>(r));
    const auto some =
        hn::And(hn::Ne(word, hn::Zero(d)),
                hn::Lt(row, hn::Set(d, static_cast<int32_t>(rows))));
    const auto all = hn::Or(word, hn::ShiftLeft<24>(row));
    hn::StoreU(hn::Compress(all, some), d, to + count);
    count += static_cast<int64_t>(hn::CountTrue(d, some));
  }
#else
  // Compress is not used: with AVX2, Highway 1.0.3 copies its table at each
  // call.
  for (int64_t r = 0; r < rows; ++r) {
    to[count] = words[r] | static_cast<int32_t>(r) << 24;
    count += words[r] != 0;
  }
#endif
  return count;
}

// Writes the segment of columns [c, c + kTriple), whose bytes are
// [kTriple,kSparseRows]; returns the end of the segment.
HWY_INLINE int32_t* Segment(const uint8_t* HWY_RESTRICT bytes, int64_t c,
                            int64_t rows, int32_t* HWY_RESTRICT to) {
  const hn::Rebind<int32_t, D> d;
  const hn::Rebind<uint8_t, D> du8;
  const auto byte = [&](int64_t at) HWY_ATTR {
    return hn::PromoteTo(d, hn::LoadU(du8, bytes + at));
  };
  HWY_ALIGN int32_t words[kSparseRows];
  HWY_UNROLL(4)
  for (int64_t r = 0; r < kSparseRows; r += kLanes) {
    const auto three =
        hn::Or(hn::Or(byte(r), hn::ShiftLeft<8>(byte(kSparseRows + r))),
               hn::ShiftLeft<16>(byte(2 * kSparseRows + r)));
    hn::StoreU(three, d, words + r);
  }
  const int64_t count = KeepNonzeros(words, rows, to + 1);
  to[0] = static_cast<int32_t>(c << 8 | count);
  return count == 0 ? to : to + 1 + count;
}

void GatherSparse(const uint8_t* table, const int32_t* indices, float alpha,
                  int32_t* x, int64_t cols, int64_t row_begin,
                  int64_t row_end) {
  HWY_ALIGN uint8_t bytes[kBlock * kSparseRows];
  for (int64_t first = row_begin; first < row_end; first += kSparseRows) {
    const int64_t rows = std::min(kSparseRows, row_end - first);
    Group group;
    for (int64_t r = 0; r < kSparseRows; ++r) {
      group.row[r] = table + indices[first + std::min(r, rows - 1)] * cols;
    }
    for (int64_t c = 0; c < std::min(kAhead, cols); c += kCacheLine) {
      for (int64_t r = 0; r < rows; ++r) hwy::Prefetch(group.row[r] + c);
    }
    int32_t* const header = x + first * SparseWidth(cols);
    int32_t* to = header + kSparseHeader;
    for (int64_t block = 0; block < cols; block += kBlock) {
      if (block + kAhead < cols) {
        for (int64_t r = 0; r < rows; ++r) {
          hwy::Prefetch(group.row[r] + block + kAhead);
        }
      }
      const int64_t end = std::min(block + kBlock, cols);
      for (int64_t c = block; c < end; c += kSquare) {
        uint8_t* square = bytes + (c - block) * kSparseRows;
        if (c + kSquare <= cols) {
          TransposeSquare(group, c, square);
        } else {
          TransposeLast(group, c, cols, square);
        }
      }
      // The last triple may have fewer than kTriple columns.
      const int64_t done = (end - block + kSquare - 1) / kSquare * kSquare;
      if (done < kBlock) {
        std::memset(bytes + done * kSparseRows, 0, 2 * kSparseRows);
      }
      for (int64_t c = block; c < end; c += kTriple) {
        to = Segment(bytes + (c - block) * kSparseRows, c, rows, to);
      }
    }
    header[0] = static_cast<int32_t>(to - header - kSparseHeader);
    std::memcpy(header + 1, &alpha, sizeof(alpha));
  }
}

// ---- the products -----------------------------------------------------------

// A table of the value alpha * byte of each byte.
struct Values {
  explicit Values(const int32_t* group) {
    float alpha;
    std::memcpy(&alpha, group + 1, sizeof(alpha));
    for (int i = 0; i < 256; ++i) of[i] = alpha * static_cast<float>(i);
  }
  // The value of byte i of a word, in all lanes.
  HWY_INLINE V Of(int32_t word, int i) const {
    return hn::Set(D(), of[static_cast<uint8_t>(word >> (8 * i))]);
  }
  HWY_ALIGN float of[256];
};

// Loads and stores of kVecs vectors; the last one may be partial.
template <int kVecs, class Lanes>
struct Columns {
  Lanes last;
  HWY_INLINE V Load(const float* p, int v) const {
    return v < kVecs - 1 ? hn::LoadU(D(), p + v * kLanes)
                         : last.Load(p + v * kLanes);
  }
  HWY_INLINE void Store(V x, float* p, int v) const {
    if (v < kVecs - 1) {
      hn::StoreU(x, D(), p + v * kLanes);
    } else {
      last.Store(x, p + v * kLanes);
    }
  }
};

// Keeps v in a register: the compiler must not load it again for a second use.
HWY_INLINE V InRegister(V v) {
#if HWY_TARGET == HWY_AVX3
  asm("" : "+v"(v.raw));
#elif HWY_TARGET == HWY_AVX2
  asm("" : "+x"(v.raw));
#endif
  return v;
}

// y += x w for one group of rows.
template <int kVecs, class Lanes>
HWY_NOINLINE void AddProduct(const int32_t* HWY_RESTRICT group,
                             const Values& values, const float* HWY_RESTRICT w,
                             int64_t ldw, int64_t k, float* HWY_RESTRICT y,
                             int64_t ldy, Columns<kVecs, Lanes> columns,
                             RowPrefetch* prefetch) {
  const int32_t* HWY_RESTRICT word = group + kSparseHeader;
  const int32_t* const end = word + group[0];
  while (word < end) {
    const int64_t c = *word >> 8;
    const int32_t* const stop = word + 1 + (*word & 255);
    V row[kTriple][kVecs];
    HWY_UNROLL(3)
    for (int i = 0; i < kTriple; ++i) {
      // Columns past the last one have zeros in x, so that any row of w will
      // do.
      const float* HWY_RESTRICT from = w + std::min(c + i, k - 1) * ldw;
      HWY_UNROLL(8)
      for (int v = 0; v < kVecs; ++v) row[i][v] = columns.Load(from, v);
    }
    while (++word < stop) {
      float* HWY_RESTRICT to = y + (*word >> 24) * ldy;
      V x[kTriple];
      HWY_UNROLL(3)
      for (int i = 0; i < kTriple; ++i) x[i] = values.Of(*word, i);
      HWY_UNROLL(8)
      for (int v = 0; v < kVecs; ++v) {
        V sum = columns.Load(to, v);
        HWY_UNROLL(3)
        for (int i = 0; i < kTriple; ++i) {
          sum = hn::MulAdd(x[i], row[i][v], sum);
        }
        columns.Store(sum, to, v);
      }
    }
    if (prefetch != nullptr) prefetch->Next();
  }
}

// dw += x^T dz for one group of rows.
template <int kVecs, class Lanes>
HWY_NOINLINE void AddOuter(const int32_t* HWY_RESTRICT group,
                           const Values& values, const float* HWY_RESTRICT dz,
                           int64_t lddz, int64_t k, float* HWY_RESTRICT dw,
                           int64_t lddw, Columns<kVecs, Lanes> columns,
                           RowPrefetch* prefetch) {
  const int32_t* HWY_RESTRICT word = group + kSparseHeader;
  const int32_t* const end = word + group[0];
  while (word < end) {
    const int64_t c = *word >> 8;
    const int32_t* const stop = word + 1 + (*word & 255);
    V sum[kTriple][kVecs];
    HWY_UNROLL(3)
    for (int i = 0; i < kTriple; ++i) {
      const float* HWY_RESTRICT from = dw + std::min(c + i, k - 1) * lddw;
      HWY_UNROLL(8)
      for (int v = 0; v < kVecs; ++v) sum[i][v] = columns.Load(from, v);
    }
    while (++word < stop) {
      const float* HWY_RESTRICT from = dz + (*word >> 24) * lddz;
      V x[kTriple];
      HWY_UNROLL(3)
      for (int i = 0; i < kTriple; ++i) x[i] = values.Of(*word, i);
      HWY_UNROLL(8)
      for (int v = 0; v < kVecs; ++v) {
        const V row = InRegister(columns.Load(from, v));
        HWY_UNROLL(3)
        for (int i = 0; i < kTriple; ++i) {
          sum[i][v] = hn::MulAdd(x[i], row, sum[i][v]);
        }
      }
    }
    HWY_UNROLL(3)
    for (int i = 0; i < kTriple; ++i) {
      if (c + i >= k) break;
      float* HWY_RESTRICT to = dw + (c + i) * lddw;
      HWY_UNROLL(8)
      for (int v = 0; v < kVecs; ++v) columns.Store(sum[i][v], to, v);
    }
    if (prefetch != nullptr) prefetch->Next();
  }
}

// Calls fn(first column, Columns) for each of the panels, which have nearly
// equal width.
template <int kVecs, class Fn>
HWY_INLINE void WithColumns(int64_t vecs, int64_t last, Fn fn) {
  if constexpr (kVecs > 1) {
    if (vecs < kVecs) return WithColumns<kVecs - 1>(vecs, last, fn);
  }
  if (last == kLanes) {
    fn(Columns<kVecs, Full>{Full()});
  } else {
    fn(Columns<kVecs, Part>{Part(last)});
  }
}

template <class Fn>
HWY_INLINE void ForPanels(int64_t n, Fn fn) {
  const int64_t vecs = (n + kLanes - 1) / kLanes;
  int64_t panels = (vecs + kMaxVecs - 1) / kMaxVecs;
  for (int64_t v = 0; v < vecs; --panels) {
    const int64_t width = (vecs - v + panels - 1) / panels;
    const int64_t last = std::min(n - (v + width - 1) * kLanes, kLanes);
    WithColumns<kMaxVecs>(width, last,
                          [&](auto columns) { fn(v * kLanes, columns); });
    v += width;
  }
}

// Estimates the calls of prefetch->Next: about three quarters of the triples
// have a segment in a group of MNIST rows.
template <class Args>
void SpreadOver(const Args& args, int64_t rows, RowPrefetch& prefetch) {
  const int64_t groups = (rows + kSparseRows - 1) / kSparseRows;
  const int64_t panels = (args.n + kMaxVecs * kLanes - 1) / (kMaxVecs * kLanes);
  prefetch.SpreadOver(groups * panels * args.k / (kTriple + 1));
}

void SparseMatMul(const SparseMatMulArgs& args, int64_t row_begin,
                  int64_t row_end) {
  if (row_begin == row_end) return;
  const int64_t width = SparseWidth(args.k);
  const Values values(args.x + row_begin * width);
  if (args.prefetch != nullptr) {
    SpreadOver(args, row_end - row_begin, *args.prefetch);
  }
  for (int64_t group = row_begin; group < row_end; group += kSparseRows) {
    const int64_t rows = std::min(kSparseRows, row_end - group);
    float* const y = args.y + group * args.ldy;
    for (int64_t r = 0; r < rows; ++r) {
      float* to = y + r * args.ldy;
      if (args.bias == nullptr) {
        ForVectors(args.n, [&](int64_t i, auto lanes) {
          lanes.Store(hn::Zero(D()), to + i);
        });
      } else {
        ForVectors(args.n, [&](int64_t i, auto lanes) {
          lanes.Store(lanes.Load(args.bias + i), to + i);
        });
      }
    }
    ForPanels(args.n, [&](int64_t c, auto columns) {
      AddProduct(args.x + group * width, values, args.w + c, args.ldw, args.k,
                 y + c, args.ldy, columns, args.prefetch);
    });
    if (args.act == Activation::kNone) continue;
    for (int64_t r = 0; r < rows; ++r) {
      float* to = y + r * args.ldy;
      if (args.act == Activation::kRelu) {
        ForVectors(args.n, [&](int64_t i, auto lanes) {
          lanes.Store(Relu(lanes.Load(to + i)), to + i);
        });
      } else {
        ActivationForward(args.act, to, to, args.n);
      }
    }
  }
}

void SparseOuter(const SparseOuterArgs& args) {
  if (args.rows == 0) return;
  const int64_t width = SparseWidth(args.k);
  const Values values(args.x);
  if (args.prefetch != nullptr) SpreadOver(args, args.rows, *args.prefetch);
  for (int64_t group = 0; group < args.rows; group += kSparseRows) {
    ForPanels(args.n, [&](int64_t c, auto columns) {
      AddOuter(args.x + group * width, values, args.dz + group * args.lddz + c,
               args.lddz, args.k, args.dw + c, args.lddw, columns,
               args.prefetch);
    });
  }
}

}  // namespace onestep::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onestep::cpu {

HWY_EXPORT(GatherSparse);
HWY_EXPORT(SparseMatMul);
HWY_EXPORT(SparseOuter);

void GatherSparse(const uint8_t* table, const int32_t* indices, float alpha,
                  int32_t* x, int64_t cols, int64_t row_begin,
                  int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(GatherSparse)
  (table, indices, alpha, x, cols, row_begin, row_end);
}

void SparseMatMul(const SparseMatMulArgs& args, int64_t row_begin,
                  int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(SparseMatMul)(args, row_begin, row_end);
}

void SparseOuter(const SparseOuterArgs& args) {
  HWY_DYNAMIC_DISPATCH(SparseOuter)(args);
}

}  // namespace onestep::cpu
#endif  // HWY_ONCE
