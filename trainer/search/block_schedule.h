// SPDX-License-Identifier: Apache-2.0
// Shares work out among the workers of a team.
#ifndef ONESTEP_TRAINER_SEARCH_BLOCK_SCHEDULE_H_
#define ONESTEP_TRAINER_SEARCH_BLOCK_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cpu/team.h"

namespace onestep {

// Work in units that must follow each other, such as the steps of one model.
struct BlockItem {
  int64_t units = 0;
  int64_t models = 1;  // that a unit is a step of
  double unit_us = 1;  // an estimate; RunBlocks makes it a measured one
};

struct Block {
  int item = 0;
  int64_t first = 0, count = 0;  // units
};

// Does `block` as `worker`. False: the item has no use for its other units.
using BlockRunner =
    absl::FunctionRef<absl::StatusOr<bool>(int worker, const Block& block)>;
// Units times models that are done, of how many; false stops.
using BlockPoll = absl::FunctionRef<bool(int64_t done, int64_t of)>;

// Does all units of all items. A worker takes a block of one item, which no
// other has meanwhile, does it and takes the next: of the item with the most
// left to do, so that none is alone at the end. A block takes `block_us` or
// so, less near the end.
//
// Polls in the calling thread about every 50 ms, between two blocks.
// Cancelled when `poll` said so; the first error of `run` ends it, too.
absl::Status RunBlocks(Team& team, double block_us,
                       std::vector<BlockItem>& items, BlockRunner run,
                       BlockPoll poll);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_BLOCK_SCHEDULE_H_
