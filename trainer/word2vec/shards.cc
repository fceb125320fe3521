// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/shards.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "trainer/word2vec/row_visits.h"

namespace onestep {
namespace {

// Steps of a shard and round, at most: longer rounds are not faster.
constexpr int64_t kMostSteps = 256;

constexpr uint64_t kShardStream = uint64_t{7} << 32;  // see random.h

// Replaces rows of the table by their places among the copies, which are made
// the first time. `places` is -1 for all rows but those in `ids`.
void TakeRows(std::span<int32_t> rows, const float* table, int64_t stride,
              std::vector<int32_t>& places, float* copies,
              std::vector<int32_t>& ids) {
  for (int32_t& row : rows) {
    int32_t& place = places[row];
    if (place < 0) {
      place = static_cast<int32_t>(ids.size());
      std::copy_n(table + row * stride, stride, copies + place * stride);
      ids.push_back(row);
    }
    row = place;
  }
}

// The copies become what was added to them.
void Subtract(const float* table, int64_t stride,
              const std::vector<int32_t>& ids, float* copies) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const float* const row = table + ids[i] * stride;
    float* const copy = copies + static_cast<int64_t>(i) * stride;
    for (int64_t c = 0; c < stride; ++c) copy[c] -= row[c];
  }
}

// Adds what belongs to the rows that are `part` modulo `parts`.
void AddRows(const float* added, const std::vector<int32_t>& ids,
             int64_t stride, int part, int parts, float* table) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] % parts != part) continue;
    float* const row = table + ids[i] * stride;
    const float* const add = added + static_cast<int64_t>(i) * stride;
    for (int64_t c = 0; c < stride; ++c) row[c] += add[c];
  }
}

}  // namespace

Shards::Capacity::Capacity(const SamplerSource& source, const TableSizes& sizes,
                           int64_t block_steps)
    : steps(block_steps),
      in(std::min(sizes.words, steps * source.contexts())),
      out(std::min(sizes.outputs, steps * source.outputs())) {}

int64_t Shards::Bytes(const SamplerSource& source, const TableSizes& sizes,
                      int threads) {
  const int64_t steps = std::max(kMostSteps, source.steps_of_window());
  const Capacity capacity(source, sizes, steps);
  return kShards *
             ((capacity.in + capacity.out) * 4 * (sizes.stride() + 1) +
              StepBlock::Bytes(steps, source.contexts(), source.outputs())) +
         4 * threads * std::max(sizes.words, sizes.outputs);
}

absl::StatusOr<Shards> Shards::Create(const SamplerSource& source,
                                      EmbeddingTables& tables, int threads) {
  const TableSizes& sizes = tables.sizes();
  const Capacity capacity(source, sizes,
                          StepsUnseen(source, kShards - 1, kMostSteps));
  const int64_t in = capacity.in * sizes.stride();
  const int64_t out = capacity.out * sizes.stride();
  ASSIGN_OR_RETURN(Buffer rows, Buffer::Create(4 * kShards * (in + out)));
  Shards shards(capacity, tables, std::move(rows));
  float* next = shards.rows_.as<float>();
  for (int s = 0; s < kShards; ++s) {
    Shard shard(source, capacity.steps);
    shard.in.rows = next;
    shard.out.rows = next + in;
    next += in + out;
    shard.in.ids.reserve(capacity.in);
    shard.out.ids.reserve(capacity.out);
    shards.shards_.push_back(std::move(shard));
  }
  const int64_t rows_of_table = std::max(sizes.words, sizes.outputs);
  shards.places_.assign(threads, std::vector<int32_t>(rows_of_table, -1));
  return shards;
}

void Shards::RunBlock(Shard& shard, float lr, std::vector<int32_t>& places,
                      WindowProgram& program) {
  StepBlock& block = shard.block;
  shard.in.ids.clear();
  shard.out.ids.clear();
  shard.more = shard.sampler.Fill(RowMap(), block);
  shard.status = absl::OkStatus();
  if (!shard.more || block.steps == 0) return;
  const int64_t stride = tables_->sizes().stride();
  const auto take = [&](std::vector<int32_t>& rows, int64_t per_step,
                        const float* table, Overlay& overlay) {
    TakeRows(std::span(rows).first(block.steps * per_step), table, stride,
             places, overlay.rows, overlay.ids);
    for (const int32_t id : overlay.ids) places[id] = -1;
  };
  take(block.contexts, block.num_contexts, tables_->in(), shard.in);
  take(block.outputs, block.num_outputs, tables_->out(), shard.out);
  shard.status = program.BindTables(shard.in.rows, shard.out.rows);
  if (shard.status.ok()) shard.status = program.Run(block, lr);
  Subtract(tables_->in(), stride, shard.in.ids, shard.in.rows);
  Subtract(tables_->out(), stride, shard.out.ids, shard.out.rows);
}

void Shards::RunEpoch(std::span<const int32_t> tokens, uint64_t seed,
                      int64_t epoch, Team& team,
                      std::vector<WindowProgram>& programs, TrainingRun& run) {
  const auto size = static_cast<int64_t>(tokens.size());
  for (int s = 0; s < kShards; ++s) {
    const int64_t begin = size * s / kShards, end = size * (s + 1) / kShards;
    shards_[s].sampler.Start(tokens.subspan(begin, end - begin),
                             Random(seed, kShardStream + epoch * kShards + s));
    shards_[s].more = true;
  }
  const int64_t stride = tables_->sizes().stride();
  team.Run([&](int worker) {
    const int workers = team.workers();
    bool more = true;
    while (more && !run.stopped() && !run.finished()) {
      const float lr = run.Rate();
      for (int s = worker; s < kShards; s += workers) {
        if (shards_[s].more) {
          RunBlock(shards_[s], lr, places_[worker], programs[worker]);
        }
      }
      team.barrier().Wait(worker);
      more = false;
      for (const Shard& shard : shards_) {
        more |= shard.more;
        if (!shard.more) continue;
        AddRows(shard.in.rows, shard.in.ids, stride, worker, workers,
                tables_->in());
        AddRows(shard.out.rows, shard.out.ids, stride, worker, workers,
                tables_->out());
      }
      if (worker == 0) {
        for (const Shard& shard : shards_) {
          if (shard.more) run.Count(shard.block, lr, shard.status);
        }
        run.MaybePoll();
      }
      team.barrier().Wait(worker);
    }
  });
}

}  // namespace onestep
