// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/embedding_tables.h"

#include <algorithm>
#include <utility>

#include "runtime/huge_pages.h"
#include "runtime/status.h"
#include "trainer/data/random.h"

namespace onestep {
namespace {

constexpr uint64_t kInitStream = uint64_t{6} << 32;  // see random.h

// shared += copy - base, then all three are the same.
void MergeRow(float* shared, float* copy, float* base, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float sum = shared[i] + (copy[i] - base[i]);
    shared[i] = copy[i] = base[i] = sum;
  }
}

// Rows that are taken ahead of the merge that will write them.
constexpr int64_t kRowsAhead = 4;

void PrefetchForWrite(const float* row, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) __builtin_prefetch(row + i, 1, 3);
}

}  // namespace

absl::StatusOr<EmbeddingTables> EmbeddingTables::Create(const TableSizes& sizes,
                                                        uint64_t seed) {
  EmbeddingTables tables;
  tables.sizes_ = sizes;
  const int64_t stride = sizes.stride();
  ASSIGN_OR_RETURN(tables.in_, Buffer::Create(4 * stride * sizes.in_rows()));
  ASSIGN_OR_RETURN(tables.out_, Buffer::Create(4 * stride * sizes.out_rows()));
  PreferHugePages(tables.in(), tables.in_.bytes());
  PreferHugePages(tables.out(), tables.out_.bytes());
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

HotRows::HotRows(EmbeddingTables& tables, int thread, std::mutex& mutex,
                 Buffer base)
    : tables_(&tables), mutex_(&mutex), base_(std::move(base)) {
  const RowMap map = tables.MapOf(thread);
  const int64_t stride = tables.sizes().stride(), n = map.hot * stride;
  in_ = tables.in() + map.in_base * stride;
  out_ = tables.out() + map.out_base * stride;
  std::copy_n(tables.in(), n, in_);
  std::copy_n(tables.out(), n, out_);
  std::copy_n(tables.in(), n, base_.as<float>());
  std::copy_n(tables.out(), n, base_.as<float>() + n);
}

absl::StatusOr<HotRows> HotRows::Create(EmbeddingTables& tables, int thread,
                                        std::mutex& mutex) {
  const TableSizes& sizes = tables.sizes();
  ASSIGN_OR_RETURN(Buffer base, Buffer::Create(8 * sizes.stride() * sizes.hot));
  return HotRows(tables, thread, mutex, std::move(base));
}

void HotRows::Merge(int64_t row) {
  const int64_t stride = tables_->sizes().stride();
  const int64_t hot = tables_->sizes().hot, at = row * stride;
  const int64_t ahead = (row + kRowsAhead) % hot * stride;
  PrefetchForWrite(tables_->in() + ahead, stride);
  PrefetchForWrite(tables_->out() + ahead, stride);
  float* const base = base_.as<float>();
  MergeRow(tables_->in() + at, in_ + at, base + at, stride);
  MergeRow(tables_->out() + at, out_ + at, base + hot * stride + at, stride);
}

void HotRows::MergeSome(int64_t rows) {
  const int64_t hot = tables_->sizes().hot;
  if (hot == 0 || !mutex_->try_lock()) return;
  for (int64_t i = 0; i < rows; ++i) {
    Merge(next_);
    next_ = next_ + 1 == hot ? 0 : next_ + 1;
  }
  mutex_->unlock();
}

void HotRows::MergeAll() {
  const std::lock_guard<std::mutex> lock(*mutex_);
  for (int64_t row = 0; row < tables_->sizes().hot; ++row) Merge(row);
}

}  // namespace onestep
