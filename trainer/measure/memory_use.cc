// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/memory_use.h"

#include <iterator>

#include "absl/strings/str_format.h"
#include "runtime/base/status.h"
#include "trainer/available_memory.h"

namespace onestep {
namespace {

constexpr int64_t kFloat = sizeof(float);
// Of each step of an epoch: rate, number, loss, correct (train_loop.h).
constexpr int64_t kScalars = 4;

}  // namespace

int64_t MemoryUse::total_bytes() const {
  int64_t total = 0;
  for (const auto& [kind, bytes] : kinds) total += bytes;
  return total;
}

absl::StatusOr<MemoryUse> EstimateMemory(const ModelSpec& model,
                                         const OptimizerSpec& optimizer,
                                         Compiled& compiled, int64_t rows,
                                         int64_t train_rows, int64_t batch) {
  ASSIGN_OR_RETURN(const OwnMemory own, MemoryOf(compiled));
  const int64_t weights = model.num_parameters() * kFloat;
  const int64_t states =
      weights * std::ssize(OptimizerOf(optimizer.kind).states);
  int64_t own_weights = 0, own_states = 0;
  for (const auto& [name, bytes] : own.params) {
    // "w1" is a weight, "w1.m" its state.
    (name.find('.') == std::string::npos ? own_weights : own_states) += bytes;
  }
  const int64_t steps = (train_rows + batch - 1) / batch;
  const int64_t label_and_order = sizeof(int32_t);
  MemoryUse memory;
  memory.kinds = {
      {"weights", weights + own_weights},
      {"gradients", own.gradients},
      {"optimizer state", states + own_states},
      {"activations", own.activations},
      {"data", rows * (model.features() + label_and_order) +
                   train_rows * label_and_order + steps * kScalars * kFloat},
      {"other", own.other + weights + states}};
  memory.arena_bytes = compiled.executable->arena_bytes();
  memory.available_bytes = AvailableMemory();
  return memory;
}

nlohmann::ordered_json ToJson(const MemoryUse& memory) {
  nlohmann::ordered_json json;
  json["kinds"] = nlohmann::ordered_json::array();
  for (const auto& [kind, bytes] : memory.kinds) {
    json["kinds"].push_back({{"kind", kind}, {"bytes", bytes}});
  }
  json["arena_bytes"] = memory.arena_bytes;
  json["total_bytes"] = memory.total_bytes();
  json["available_bytes"] =
      memory.available_bytes < 0
          ? nlohmann::ordered_json(nullptr)
          : nlohmann::ordered_json(memory.available_bytes);
  return json;
}

std::string BytesText(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat(unit == 0 ? "%.0f %s" : "%.1f %s", value,
                         kUnits[unit]);
}

std::string ToText(const MemoryUse& memory) {
  std::string text;
  for (const auto& [kind, bytes] : memory.kinds) {
    absl::StrAppendFormat(&text, "  %-16s %10s\n", kind, BytesText(bytes));
  }
  absl::StrAppendFormat(&text, "  %-16s %10s", "total",
                        BytesText(memory.total_bytes()));
  const int64_t available = memory.available_bytes;
  if (available < 0) return text + "\n";
  absl::StrAppend(&text, "; available here ", BytesText(available), "\n");
  if (memory.total_bytes() > available) {
    absl::StrAppend(&text, "note: this machine cannot hold such a run now\n");
  }
  return text;
}

}  // namespace onestep
