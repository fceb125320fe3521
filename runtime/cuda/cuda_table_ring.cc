// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_table_ring.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "runtime/base/status.h"

namespace onestep {
namespace {

// Large enough for the bus's full speed.
constexpr int64_t kChunkRows = 64 << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<CudaTableRing>> CudaTableRing::Create(
    CudaApi& cuda, CudaApi::Stream compute, std::vector<int64_t> row_bytes,
    int64_t rows, int64_t limit_bytes) {
  std::unique_ptr<CudaTableRing> ring(new CudaTableRing(cuda));
  ring->compute_ = compute;
  const int64_t step_bytes =
      rows * std::accumulate(row_bytes.begin(), row_bytes.end(), int64_t{0});
  ring->chunk_steps_ =
      std::clamp<int64_t>(limit_bytes / kChunks / step_bytes, 1,
                          std::max<int64_t>(1, kChunkRows / rows));
  ring->rows_ = rows;
  ring->row_bytes_ = std::move(row_bytes);
  ASSIGN_OR_RETURN(ring->copies_, Own<CudaStream>(cuda, cuda.CreateStream()));
  for (const int64_t bytes : ring->row_bytes_) {
    const int64_t chunk_bytes = ring->chunk_steps_ * rows * bytes;
    ASSIGN_OR_RETURN(CudaMemory device,
                     Own<CudaMemory>(cuda, cuda.Malloc(kChunks * chunk_bytes)));
    ring->device_.push_back(std::move(device));
    for (Chunk& chunk : ring->chunks_) {
      ASSIGN_OR_RETURN(
          CudaPinnedMemory staging,
          Own<CudaPinnedMemory>(cuda, cuda.MallocHost(chunk_bytes)));
      chunk.staging.push_back(std::move(staging));
    }
  }
  for (Chunk& chunk : ring->chunks_) {
    ASSIGN_OR_RETURN(chunk.copied, Own<CudaEvent>(cuda, cuda.CreateEvent()));
    ASSIGN_OR_RETURN(chunk.used, Own<CudaEvent>(cuda, cuda.CreateEvent()));
  }
  return ring;
}

CudaTableRing::~CudaTableRing() {
  if (copies_) cuda_.Synchronize(copies_.get()).IgnoreError();
}

void CudaTableRing::Number(int32_t* indices, int64_t steps) const {
  const int64_t ring_rows = kChunks * chunk_steps_ * rows_;
  for (int64_t i = 0; i < steps * rows_; ++i) {
    indices[i] = static_cast<int32_t>(i % ring_rows);
  }
}

// Into the current chunk's staging, step by step.
void CudaTableRing::Gather(const std::vector<const char*>& tables,
                           const char* indices, int64_t stride_bytes,
                           int64_t count) {
  for (size_t t = 0; t < tables.size(); ++t) {
    const int64_t bytes = row_bytes_[t];
    char* to = static_cast<char*>(chunks_[current_].staging[t].get());
    for (int64_t s = 0; s < count; ++s) {
      const auto* const rows =
          reinterpret_cast<const int32_t*>(indices + s * stride_bytes);
      for (int64_t r = 0; r < rows_; ++r, to += bytes) {
        std::memcpy(to, tables[t] + rows[r] * bytes, bytes);
      }
    }
  }
}

absl::Status CudaTableRing::Begin(const std::vector<const char*>& tables,
                                  const char* indices, int64_t stride_bytes,
                                  int64_t first, int64_t count) {
  CHECK(first % chunk_steps_ == 0 && count <= chunk_steps_);
  current_ = static_cast<int>(first / chunk_steps_ % kChunks);
  Chunk& chunk = chunks_[current_];
  // The staging is free when its last copy is done.
  if (chunk.filled) RETURN_IF_ERROR(cuda_.WaitOnHost(chunk.copied.get()));
  Gather(tables, indices, stride_bytes, count);
  // The device's chunk is free when the steps that read it are done.
  if (chunk.filled) {
    RETURN_IF_ERROR(cuda_.Wait(copies_.get(), chunk.used.get()));
  }
  for (size_t t = 0; t < tables.size(); ++t) {
    char* const to = static_cast<char*>(device_[t].get()) +
                     current_ * chunk_steps_ * rows_ * row_bytes_[t];
    RETURN_IF_ERROR(cuda_.CopyToDevice(to, chunk.staging[t].get(),
                                       count * rows_ * row_bytes_[t],
                                       copies_.get()));
  }
  RETURN_IF_ERROR(cuda_.Record(chunk.copied.get(), copies_.get()));
  return cuda_.Wait(compute_, chunk.copied.get());
}

absl::Status CudaTableRing::End() {
  chunks_[current_].filled = true;
  return cuda_.Record(chunks_[current_].used.get(), compute_);
}

}  // namespace onestep
