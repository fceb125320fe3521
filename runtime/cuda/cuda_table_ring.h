// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_RUNTIME_CUDA_CUDA_TABLE_RING_H_
#define ONESTEP_RUNTIME_CUDA_CUDA_TABLE_RING_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/cuda_handle.h"

namespace onestep {

// Copies the rows of tables that the device cannot hold as steps need them. The
// device has a ring of three chunks, each with the rows of chunk_steps steps in
// the order in which the steps read them. While the steps of one chunk run, the
// next chunk is copied on a stream of its own, and a third is gathered in
// pinned memory. Kernels see a table of 3 * chunk_steps * rows rows and row
// numbers in that table.
class CudaTableRing {
 public:
  static constexpr int kChunks = 3;

  // Tables of these row sizes, of which each step reads `rows` rows; at most
  // `limit_bytes` of device memory, but for at least one step a chunk.
  static absl::StatusOr<std::unique_ptr<CudaTableRing>> Create(
      CudaApi& cuda, CudaApi::Stream compute, std::vector<int64_t> row_bytes,
      int64_t rows, int64_t limit_bytes);

  ~CudaTableRing();

  void* table(int i) const { return device_[i].get(); }
  int64_t chunk_steps() const { return chunk_steps_; }

  // The row numbers of steps 0 .. steps - 1, as the kernels are given them.
  void Number(int32_t* indices, int64_t steps) const;

  // Copies the rows of steps [first, first + count). `indices` points to the
  // first step's row numbers in `tables`, on the host; those of the next step
  // are `stride_bytes` further. Steps that are launched after this call read
  // the rows. REQUIRES: chunk by chunk from step 0 on.
  absl::Status Begin(const std::vector<const char*>& tables,
                     const char* indices, int64_t stride_bytes, int64_t first,
                     int64_t count);
  // Called after the launches of the chunk's steps.
  absl::Status End();

 private:
  struct Chunk {
    std::vector<CudaPinnedMemory> staging;  // one per table
    CudaEvent copied, used;
    bool filled = false;  // before: the events mean something
  };

  explicit CudaTableRing(CudaApi& cuda) : cuda_(cuda) {}
  void Gather(const std::vector<const char*>& tables, const char* indices,
              int64_t stride_bytes, int64_t count);

  CudaApi& cuda_;
  CudaApi::Stream compute_ = nullptr;
  std::vector<int64_t> row_bytes_;
  int64_t rows_ = 0, chunk_steps_ = 0;
  std::vector<CudaMemory> device_;  // one per table
  std::array<Chunk, kChunks> chunks_;
  CudaStream copies_;  // destroyed first
  int current_ = 0;
};

}  // namespace onestep

#endif  // ONESTEP_RUNTIME_CUDA_CUDA_TABLE_RING_H_
