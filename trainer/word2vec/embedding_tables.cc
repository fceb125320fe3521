// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/embedding_tables.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/status.h"
#include "trainer/data/random.h"

namespace onestep {
namespace {

constexpr uint64_t kInitStream = uint64_t{6} << 32;  // see random.h

// shared += copy - base, then all three are the same. Lines of `shared` may be
// in another core's cache: they are asked for ahead.
void Merge(float* shared, float* copy, float* base, int64_t n) {
  constexpr int64_t kLine = 16, kAhead = 32 * kLine;
  for (int64_t i = 0; i < std::min(n, kAhead); i += kLine) {
    __builtin_prefetch(shared + i, /*rw=*/1, /*locality=*/3);
  }
  for (int64_t line = 0; line < n; line += kLine) {
    __builtin_prefetch(shared + line + kAhead, /*rw=*/1, /*locality=*/3);
    for (int64_t i = line; i < line + kLine; ++i) {
      const float sum = shared[i] + (copy[i] - base[i]);
      shared[i] = copy[i] = base[i] = sum;
    }
  }
}

}  // namespace

absl::StatusOr<EmbeddingTables> EmbeddingTables::Create(const TableSizes& sizes,
                                                        uint64_t seed) {
  EmbeddingTables tables;
  tables.sizes_ = sizes;
  const int64_t stride = sizes.stride();
  ASSIGN_OR_RETURN(tables.in_, Buffer::Create(4 * stride * sizes.in_rows()));
  ASSIGN_OR_RETURN(tables.out_, Buffer::Create(4 * stride * sizes.out_rows()));
  Random random(seed, kInitStream);
  const double bound = 1 / static_cast<double>(sizes.size);
  for (int64_t word = 0; word < sizes.words; ++word) {
    float* const row = tables.in() + word * stride;
    for (int64_t i = 0; i < sizes.size; ++i) {
      row[i] = static_cast<float>(random.Uniform(-bound, bound));
    }
  }
  return tables;
}

RowMap EmbeddingTables::MapOf(int thread) const {
  RowMap map;
  if (sizes_.hot == 0) return map;
  map.hot = static_cast<int32_t>(sizes_.hot);
  map.in_base = static_cast<int32_t>(sizes_.words + thread * sizes_.hot);
  map.out_base = static_cast<int32_t>(sizes_.outputs + thread * sizes_.hot);
  return map;
}

HotRows::HotRows(EmbeddingTables& tables, int thread,
                 std::span<const MergeGroup> groups, std::mutex& mutex,
                 Buffer base)
    : tables_(&tables), mutex_(&mutex), base_(std::move(base)) {
  for (const MergeGroup& group : groups) turns_.push_back({group});
  const RowMap map = tables.MapOf(thread);
  const int64_t stride = tables.sizes().stride();
  in_ = tables.in() + map.in_base * stride;
  out_ = tables.out() + map.out_base * stride;
}

void HotRows::Take() {
  const std::lock_guard<std::mutex> lock(*mutex_);
  const int64_t n = tables_->sizes().hot * tables_->sizes().stride();
  float* const base = base_.as<float>();
  std::copy_n(tables_->in(), n, in_);
  std::copy_n(tables_->out(), n, out_);
  std::copy_n(in_, n, base);
  std::copy_n(out_, n, base + n);
}

absl::StatusOr<HotRows> HotRows::Create(EmbeddingTables& tables, int thread,
                                        std::span<const MergeGroup> groups,
                                        std::mutex& mutex) {
  const TableSizes& sizes = tables.sizes();
  ASSIGN_OR_RETURN(Buffer base, Buffer::Create(8 * sizes.stride() * sizes.hot));
  return HotRows(tables, thread, groups, mutex, std::move(base));
}

// REQUIRES: the mutex is held.
void HotRows::MergeRange(int64_t begin, int64_t rows) {
  const int64_t stride = tables_->sizes().stride();
  const int64_t at = begin * stride, n = rows * stride;
  float* const base = base_.as<float>() + at;
  Merge(tables_->in() + at, in_ + at, base, n);
  Merge(tables_->out() + at, out_ + at, base + tables_->sizes().hot * stride,
        n);
}

void HotRows::MergeDue(int64_t windows) {
  bool late = false;
  for (Turn& turn : turns_) {
    const auto rows = static_cast<double>(turn.group.rows);
    turn.due += static_cast<double>(windows) * rows / turn.group.windows;
    turn.due = std::min(turn.due, 2 * rows);  // however high the rate
    late |= turn.due == 2 * rows;
  }
  std::unique_lock<std::mutex> lock(*mutex_, std::defer_lock);
  if (late) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return;
  }
  for (Turn& turn : turns_) {
    const auto& [begin, rows, unused] = turn.group;
    const int64_t due = std::min(rows, static_cast<int64_t>(turn.due));
    const int64_t first = std::min(due, rows - turn.next);
    MergeRange(begin + turn.next, first);
    MergeRange(begin, due - first);
    turn.next = (turn.next + due) % rows;
    turn.due -= std::floor(turn.due);
  }
}

void HotRows::MergeAll() {
  const std::lock_guard<std::mutex> lock(*mutex_);
  MergeRange(0, tables_->sizes().hot);
}

}  // namespace onestep
