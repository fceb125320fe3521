// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/buffer.h"
#include "runtime/base/status.h"
#include "tests/cuda_emulator/emulated_cuda.h"

namespace onestep {

absl::StatusOr<int64_t> EmulatedCuda::FreeMemory() {
  RETURN_IF_ERROR(Begin({"FreeMemory"}));
  return UnusedMemory();
}

int64_t EmulatedCuda::UnusedMemory() const {
  int64_t unused = options_.device.memory_bytes;
  for (const auto& [address, memory] : memory_) {
    if (!memory.pinned) unused -= memory.bytes;
  }
  return unused;
}

absl::StatusOr<void*> EmulatedCuda::Malloc(int64_t bytes) {
  RETURN_IF_ERROR(Begin({.name = "Malloc", .bytes = bytes}, true));
  return Allocate("Malloc", bytes, /*pinned=*/false);
}

absl::StatusOr<void*> EmulatedCuda::MallocHost(int64_t bytes) {
  RETURN_IF_ERROR(Begin({.name = "MallocHost", .bytes = bytes}, true));
  return Allocate("MallocHost", bytes, /*pinned=*/true);
}

void EmulatedCuda::Free(void* device) {
  if (BeginDestroy({"Free"}, true)) Release("Free", device, false);
}

void EmulatedCuda::FreeHost(void* host) {
  if (BeginDestroy({"FreeHost"}, true)) Release("FreeHost", host, true);
}

absl::StatusOr<void*> EmulatedCuda::Allocate(const char* call, int64_t bytes,
                                             bool pinned) {
  if (bytes <= 0) {
    return CudaError(call, kCudaInvalidValue, absl::StrCat(bytes, " bytes"));
  }
  if (!pinned && bytes > UnusedMemory()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cudaMalloc of ", bytes, " bytes: out of memory (2), ",
                     UnusedMemory(), " free"));
  }
  void* data = nullptr;
  CHECK(posix_memalign(&data, kBufferAlignment, static_cast<size_t>(bytes)) ==
        0);
  std::memset(data, 0xff, static_cast<size_t>(bytes));
  Allocation allocation{
      {static_cast<unsigned char*>(data), std::free}, bytes, pinned};
  memory_.emplace(Address(data), std::move(allocation));
  return data;
}

void EmulatedCuda::Release(const char* call, void* memory, bool pinned) {
  if (memory == nullptr) return;
  const auto found = memory_.find(Address(memory));
  if (found == memory_.end() || found->second.pinned != pinned) {
    errors_.push_back(
        absl::StrFormat("%s of %p, which it did not allocate", call, memory));
    return;
  }
  const uintptr_t begin = found->first, end = begin + found->second.bytes;
  for (const auto& [number, stream] : streams_) {
    for (const Task& task : stream.queue) {
      EmulatedGraph queued;
      queued.nodes.push_back({.work = task.work});
      if (task.exec == nullptr ? !queued.Uses(begin, end)
                               : !task.exec->graph->Uses(begin, end)) {
        continue;
      }
      errors_.push_back(absl::StrFormat(
          "%s of %p, which the %s %s queued on stream %d uses", call, memory,
          task.work.kind, task.work.name, number));
      DrainAll();
      memory_.erase(Address(memory));
      return;
    }
  }
  memory_.erase(found);
}

const EmulatedCuda::Allocation* EmulatedCuda::Overlapping(const void* begin,
                                                          int64_t bytes) const {
  auto next = memory_.lower_bound(Address(begin) + std::max<int64_t>(bytes, 1));
  if (next == memory_.begin()) return nullptr;
  --next;
  const Allocation& last = next->second;
  return next->first + last.bytes > Address(begin) ? &last : nullptr;
}

bool EmulatedCuda::Inside(const Allocation* allocation, const void* begin,
                          int64_t bytes) {
  return allocation != nullptr &&
         Address(begin) >= Address(allocation->data.get()) &&
         Address(begin) + bytes <=
             Address(allocation->data.get()) + allocation->bytes;
}

bool EmulatedCuda::InsideDevice(const void* begin, int64_t bytes) const {
  const Allocation* found = Overlapping(begin, bytes);
  return Inside(found, begin, bytes) && !found->pinned;
}

absl::Status EmulatedCuda::CheckRanges(const char* call, const void* device,
                                       const void* host, int64_t bytes) const {
  if (bytes < 0 || !InsideDevice(device, bytes)) {
    return CudaError(
        call, kCudaInvalidValue,
        absl::StrFormat("%d bytes at %p are not device memory", bytes, device));
  }
  const Allocation* found = Overlapping(host, bytes);
  if (found == nullptr || (found->pinned && Inside(found, host, bytes))) {
    return absl::OkStatus();
  }
  return CudaError(
      call, kCudaInvalidValue,
      absl::StrFormat("%d bytes at %p are not host memory", bytes, host));
}

absl::Status EmulatedCuda::CopyToDevice(void* device, const void* host,
                                        int64_t bytes, Stream stream) {
  const bool pageable = Overlapping(host, bytes) == nullptr;
  RETURN_IF_ERROR(Begin({.name = "CopyToDevice",
                         .detail = pageable ? "from pageable memory" : "",
                         .stream = Number(stream),
                         .bytes = bytes},
                        pageable));
  RETURN_IF_ERROR(CheckRanges("CopyToDevice", device, host, bytes));
  Task task{.work = {.kind = "memcpy", .addresses = {Address(device)}}};
  if (pageable) {
    const auto* from = static_cast<const unsigned char*>(host);
    task.work.run = [=, copy = std::vector<unsigned char>(from, from + bytes)](
                        uint64_t) {
      std::copy(copy.begin(), copy.end(), static_cast<unsigned char*>(device));
      return absl::OkStatus();
    };
  } else {
    task.work.addresses.push_back(Address(host));
    task.work.run = [=, this](uint64_t) {
      RETURN_IF_ERROR(CheckRanges("CopyToDevice", device, host, bytes));
      std::memcpy(device, host, static_cast<size_t>(bytes));
      return absl::OkStatus();
    };
  }
  return Enqueue("CopyToDevice", stream, std::move(task));
}

absl::Status EmulatedCuda::CopyToHost(void* host, const void* device,
                                      int64_t bytes, Stream stream) {
  const bool pageable = Overlapping(host, bytes) == nullptr;
  RETURN_IF_ERROR(Begin({.name = "CopyToHost",
                         .detail = pageable ? "to pageable memory" : "",
                         .stream = Number(stream),
                         .bytes = bytes},
                        pageable));
  RETURN_IF_ERROR(CheckRanges("CopyToHost", device, host, bytes));
  Task task{.work = {.kind = "memcpy",
                     .addresses = {Address(device), Address(host)}}};
  task.work.run = [=, this](uint64_t) {
    RETURN_IF_ERROR(CheckRanges("CopyToHost", device, host, bytes));
    std::memcpy(host, device, static_cast<size_t>(bytes));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(Enqueue("CopyToHost", stream, std::move(task)));
  return pageable ? Drain("CopyToHost", streams_[Number(stream)])
                  : absl::OkStatus();
}

absl::Status EmulatedCuda::Memset(void* device, int value, int64_t bytes,
                                  Stream stream) {
  RETURN_IF_ERROR(
      Begin({.name = "Memset", .stream = Number(stream), .bytes = bytes}));
  RETURN_IF_ERROR(CheckRanges("Memset", device, nullptr, bytes));
  Task task{.work = {.kind = "memset", .addresses = {Address(device)}}};
  task.work.run = [=, this](uint64_t) {
    RETURN_IF_ERROR(CheckRanges("Memset", device, nullptr, bytes));
    std::memset(device, value, static_cast<size_t>(bytes));
    return absl::OkStatus();
  };
  return Enqueue("Memset", stream, std::move(task));
}

}  // namespace onestep
