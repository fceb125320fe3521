// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_bindings.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/buffer.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// The array of a value that advances is allocated for at least so many steps or
// bytes, whichever is less, so that a longer run seldom moves it.
constexpr int64_t kArraySteps = 4096;
constexpr int64_t kArrayBytes = 4 << 20;

// Tables on the device, shared by the executables that read the same one: the
// train step, its tail and the evaluation.
using TableKey = std::tuple<CudaApi*, const void*, int64_t, size_t>;
std::map<TableKey, std::weak_ptr<CudaMemory>>& SharedTables() {
  static auto& tables = *new std::map<TableKey, std::weak_ptr<CudaMemory>>;
  return tables;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaBindings>> CudaBindings::Create(
    CudaApi& cuda, CudaApi::Stream stream, std::vector<CudaSlot> slots,
    std::vector<CudaTable> tables, int64_t arena_bytes, int64_t workspace_bytes,
    int64_t table_limit_bytes) {
  std::unique_ptr<CudaBindings> bindings(new CudaBindings);
  CudaBindings& b = *bindings;
  b.cuda_ = &cuda;
  b.stream_ = stream;
  b.tables_ = std::move(tables);
  ASSIGN_OR_RETURN(b.arena_, b.Allocate(arena_bytes));
  ASSIGN_OR_RETURN(b.workspace_memory_, b.Allocate(workspace_bytes));
  b.workspace_ = static_cast<char*>(b.workspace_memory_.get());
  ASSIGN_OR_RETURN(b.control_memory_, b.Allocate(kControlBytes));
  b.control_ = b.control_memory_.get();
  RETURN_IF_ERROR(cuda.Memset(b.workspace_, 0, workspace_bytes, stream));
  for (CudaSlot& slot : slots) {
    Place& place = b.places_.emplace_back();
    place.slot = std::move(slot);
  }
  for (int i = 0; i < b.size(); ++i) {
    Place& place = b.places_[i];
    if (place.slot.offset >= 0) {
      place.address = static_cast<char*>(b.arena_.get()) + place.slot.offset;
    } else if (!b.is_table(i)) {
      ASSIGN_OR_RETURN(CudaMemory memory, b.Allocate(place.slot.bytes));
      place.address = memory.get();
      place.memory = std::make_shared<CudaMemory>(std::move(memory));
    }
  }
  RETURN_IF_ERROR(b.PlaceTables(table_limit_bytes));
  return bindings;
}

// Queued work may use the memory that is freed now.
CudaBindings::~CudaBindings() {
  if (cuda_ != nullptr) cuda_->Synchronize(stream_).IgnoreError();
}

std::unique_ptr<CudaBindings> CudaBindings::Planned(
    std::vector<CudaSlot> slots, std::vector<CudaTable> tables,
    int64_t arena_bytes, int64_t workspace_bytes) {
  std::unique_ptr<CudaBindings> bindings(new CudaBindings);
  bindings->tables_ = std::move(tables);
  uintptr_t next = kBufferAlignment;
  const auto take = [&next](int64_t bytes) {
    const uintptr_t address = next;
    next += AlignUp(std::max<int64_t>(bytes, 1));
    return reinterpret_cast<char*>(address);
  };
  bindings->workspace_ = take(workspace_bytes);
  bindings->control_ = take(kControlBytes);
  char* const arena = take(arena_bytes);
  for (CudaSlot& slot : slots) {
    Place& place = bindings->places_.emplace_back();
    place.address = slot.offset >= 0 ? arena + slot.offset : take(slot.bytes);
    if (!slot.name.empty()) place.host = static_cast<char*>(place.address);
    const bool advances =
        (slot.role == CudaSlot::kInput &&
         !bindings->is_table(static_cast<int>(bindings->places_.size()) - 1)) ||
        slot.role == CudaSlot::kResult;
    if (advances) place.stride_bytes = slot.bytes;
    place.slot = std::move(slot);
  }
  return bindings;
}

absl::StatusOr<CudaMemory> CudaBindings::Allocate(int64_t bytes) {
  bytes = AlignUp(std::max<int64_t>(bytes, 1));
  return Own<CudaMemory>(*cuda_, cuda_->Malloc(bytes));
}

bool CudaBindings::is_table(int slot) const {
  return std::any_of(tables_.begin(), tables_.end(),
                     [&](const CudaTable& t) { return t.slot == slot; });
}

absl::Status CudaBindings::PlaceTables(int64_t limit_bytes) {
  int64_t bytes = 0;
  for (const CudaTable& table : tables_) {
    bytes += places_[table.slot].slot.bytes;
    if (table.indices != tables_[0].indices) limit_bytes = INT64_MAX;
  }
  if (bytes <= limit_bytes) return absl::OkStatus();
  std::vector<int64_t> row_bytes;
  for (const CudaTable& table : tables_) row_bytes.push_back(table.row_bytes);
  const int64_t rows = places_[tables_[0].indices].slot.bytes / sizeof(int32_t);
  ASSIGN_OR_RETURN(
      ring_, CudaTableRing::Create(*cuda_, stream_, std::move(row_bytes), rows,
                                   limit_bytes));
  for (size_t t = 0; t < tables_.size(); ++t) {
    places_[tables_[t].slot].address = ring_->table(static_cast<int>(t));
  }
  return absl::OkStatus();
}

CudaBindings::Advancing CudaBindings::advancing(int slot) const {
  const Place& place = places_[slot];
  if (place.stride_bytes == 0) return {place.address, 0};
  return {place.array.get(), place.slot.bytes};
}

absl::Status CudaBindings::Bind(absl::string_view name, void* data,
                                int64_t stride_bytes, int64_t steps) {
  const auto it =
      std::find_if(places_.begin(), places_.end(),
                   [&](const Place& place) { return place.slot.name == name; });
  if (it == places_.end() || name.empty()) {
    return absl::NotFoundError(absl::StrCat("bind: no value named ", name));
  }
  if (stride_bytes != 0 && it->slot.bytes % 4 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("bind: ", name, " advances, want a multiple of 4 bytes, ",
                     "got ", it->slot.bytes));
  }
  if ((it->stride_bytes == 0) != (stride_bytes == 0)) ++layout_;
  if ((it->host == nullptr) != (data == nullptr)) ++layout_;
  it->host = static_cast<char*>(data);
  it->stride_bytes = stride_bytes;
  it->steps_left = steps;
  it->stale = true;
  if (stride_bytes != 0) restart_ = true;
  return absl::OkStatus();
}

absl::Status CudaBindings::CheckBound() const {
  for (const Place& place : places_) {
    if ((place.slot.role == CudaSlot::kInput ||
         place.slot.role == CudaSlot::kParam) &&
        place.host == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("run: ", place.slot.name, " is not bound"));
    }
  }
  if (ring_ != nullptr && places_[tables_[0].indices].stride_bytes == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "run: ", places_[tables_[0].slot].slot.name,
        " stays on the host, want ", places_[tables_[0].indices].slot.name,
        " bound with a stride"));
  }
  return absl::OkStatus();
}

absl::Status CudaBindings::ToDevice(void* device, const void* host,
                                    int64_t bytes) {
  traffic_.to_device_bytes += bytes;
  ++traffic_.copies;
  return cuda_->CopyToDevice(device, host, bytes, stream_);
}

absl::Status CudaBindings::Stage(Place& place, int64_t bytes) {
  if (place.staging_bytes >= bytes) return absl::OkStatus();
  ASSIGN_OR_RETURN(place.staging,
                   Own<CudaPinnedMemory>(*cuda_, cuda_->MallocHost(bytes)));
  place.staging_bytes = bytes;
  return absl::OkStatus();
}

// Copies a value that does not advance.
absl::Status CudaBindings::CopyFixed(int slot) {
  Place& place = places_[slot];
  const int64_t bytes = place.slot.bytes;
  if (is_table(slot)) return CopyTable(place);
  RETURN_IF_ERROR(Stage(place, bytes));
  std::memcpy(place.staging.get(), place.host, bytes);
  place.stale = false;
  return ToDevice(place.address, place.staging.get(), bytes);
}

absl::Status CudaBindings::CopyTable(Place& place) {
  place.stale = false;
  if (ring_ != nullptr) return absl::OkStatus();
  const int64_t bytes = place.slot.bytes;
  const TableKey key = {cuda_, place.host, bytes,
                        absl::HashOf(absl::string_view(place.host, bytes))};
  std::erase_if(SharedTables(),
                [](const auto& known) { return known.second.expired(); });
  std::weak_ptr<CudaMemory>& shared = SharedTables()[key];
  std::shared_ptr<CudaMemory> memory = shared.lock();
  if (memory == nullptr) {
    ASSIGN_OR_RETURN(CudaMemory fresh, Allocate(bytes));
    memory = std::make_shared<CudaMemory>(std::move(fresh));
    place.memory = memory;
    RETURN_IF_ERROR(ToDevice(memory->get(), place.host, bytes));
    // Other programs that share the table read it on other streams.
    RETURN_IF_ERROR(cuda_->Synchronize(stream_));
    shared = memory;
  }
  place.memory = std::move(memory);
  place.address = place.memory->get();
  ++layout_;
  return absl::OkStatus();
}

// Allocates an array for `steps` steps and the one that a prefetch reads.
absl::Status CudaBindings::Reserve(Place& place, int64_t steps) {
  const int64_t bytes = place.slot.bytes;
  if (place.array_steps >= steps + 1) return absl::OkStatus();
  const int64_t rounded =
      std::max(steps + 1, std::min(kArraySteps, kArrayBytes / bytes));
  ASSIGN_OR_RETURN(place.array, Allocate(rounded * bytes));
  place.array_steps = rounded;
  ++layout_;
  return cuda_->Memset(place.array.get(), 0, rounded * bytes, stream_);
}

absl::Status CudaBindings::CopyArray(int slot, int64_t steps) {
  Place& place = places_[slot];
  const int64_t bytes = place.slot.bytes;
  RETURN_IF_ERROR(Stage(place, steps * bytes));
  char* const staged = static_cast<char*>(place.staging.get());
  for (int64_t s = 0; s < steps; ++s) {
    std::memcpy(staged + s * bytes, place.host + s * place.stride_bytes, bytes);
  }
  if (ring_ != nullptr && slot == tables_[0].indices) {
    ring_->Number(reinterpret_cast<int32_t*>(staged), steps);
  }
  return ToDevice(place.array.get(), staged, steps * bytes);
}

absl::Status CudaBindings::Restart(int64_t n) {
  steps_ready_ = std::numeric_limits<int64_t>::max();
  for (Place& place : places_) {
    if (place.host == nullptr || place.stride_bytes == 0) continue;
    const bool all = place.steps_left >= n && ring_ == nullptr;
    steps_ready_ = std::min(steps_ready_, all ? place.steps_left : n);
  }
  for (int i = 0; i < size(); ++i) {
    Place& place = places_[i];
    if (place.host == nullptr || place.stride_bytes == 0) continue;
    RETURN_IF_ERROR(Reserve(place, steps_ready_));
    if (place.slot.role == CudaSlot::kInput) {
      RETURN_IF_ERROR(CopyArray(i, steps_ready_));
    }
  }
  step_ = 0;
  restart_ = false;
  return cuda_->Memset(control_, 0, kControlBytes, stream_);
}

absl::StatusOr<bool> CudaBindings::BeginRun(int64_t n) {
  RETURN_IF_ERROR(CheckBound());
  for (int i = 0; i < size(); ++i) {
    Place& place = places_[i];
    const bool param = place.slot.role == CudaSlot::kParam;
    const bool input =
        place.slot.role == CudaSlot::kInput && place.stride_bytes == 0;
    if (!param && !input) continue;
    const bool changed =
        place.stale || (param && params_stale_) ||
        (input && place.slot.bytes <= kWatchedBytes && !is_table(i) &&
         std::memcmp(place.staging.get(), place.host, place.slot.bytes) != 0);
    if (changed) RETURN_IF_ERROR(CopyFixed(i));
  }
  params_stale_ = false;
  if (!restart_ && ring_ == nullptr && step_ + n <= steps_ready_) return false;
  RETURN_IF_ERROR(Restart(n));
  return true;
}

absl::Status CudaBindings::BeginChunk(int64_t first, int64_t count) {
  const Place& indices = places_[tables_[0].indices];
  std::vector<const char*> hosts;
  int64_t bytes = 0;
  for (const CudaTable& table : tables_) {
    hosts.push_back(places_[table.slot].host);
    bytes += count * indices.slot.bytes / sizeof(int32_t) * table.row_bytes;
  }
  traffic_.to_device_bytes += bytes;
  traffic_.in_steps_bytes += bytes;
  ++traffic_.copies;
  return ring_->Begin(hosts, indices.host + first * indices.stride_bytes,
                      indices.stride_bytes, first, count);
}

absl::Status CudaBindings::EndChunk() { return ring_->End(); }

absl::Status CudaBindings::EndRun(int64_t n) {
  for (Place& place : places_) {
    if (place.host == nullptr || place.slot.role != CudaSlot::kResult) continue;
    const bool advances = place.stride_bytes != 0;
    const int64_t bytes = place.slot.bytes * (advances ? n : 1);
    const char* const from = advances ? static_cast<char*>(place.array.get()) +
                                            step_ * place.slot.bytes
                                      : static_cast<char*>(place.address);
    RETURN_IF_ERROR(Stage(place, bytes));
    RETURN_IF_ERROR(ToHost(place.staging.get(), from, bytes));
  }
  RETURN_IF_ERROR(cuda_->Synchronize(stream_));
  for (Place& place : places_) {
    if (place.host == nullptr) continue;
    const int64_t bytes = place.slot.bytes;
    const bool advances = place.stride_bytes != 0;
    if (place.slot.role == CudaSlot::kResult) {
      const char* const staged = static_cast<char*>(place.staging.get());
      for (int64_t s = 0; s < (advances ? n : 1); ++s) {
        std::memcpy(place.host + s * place.stride_bytes, staged + s * bytes,
                    bytes);
      }
    }
    place.host += n * place.stride_bytes;
    if (place.steps_left > 0) place.steps_left -= std::min(n, place.steps_left);
  }
  step_ += n;
  return absl::OkStatus();
}

absl::Status CudaBindings::ToHost(void* host, const void* device,
                                  int64_t bytes) {
  traffic_.to_host_bytes += bytes;
  ++traffic_.copies;
  return cuda_->CopyToHost(host, device, bytes, stream_);
}

absl::Status CudaBindings::ParamsToHost() {
  if (params_stale_) return absl::OkStatus();  // the host's are newer
  std::vector<Place*> params;
  for (Place& place : places_) {
    if (place.slot.role != CudaSlot::kParam || place.stale) continue;
    RETURN_IF_ERROR(
        ToHost(place.staging.get(), place.address, place.slot.bytes));
    params.push_back(&place);
  }
  RETURN_IF_ERROR(cuda_->Synchronize(stream_));
  for (Place* place : params) {
    std::memcpy(place->host, place->staging.get(), place->slot.bytes);
  }
  return absl::OkStatus();
}

}  // namespace onestep
