// SPDX-License-Identifier: Apache-2.0
// One program per worker: a train step spread over W workers that share
// memory, as a model is spread over devices (DESIGN.md, section 6).
#ifndef ONESTEP_COMPILER_PASSES_PARTITION_H_
#define ONESTEP_COMPILER_PASSES_PARTITION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace onestep {

// The type of what worker w holds of a value so placed.
TensorType PartOf(TensorType type, const Placement& placement, int workers,
                  int worker);

// How every node of `graph` is computed on W workers.
struct Partition {
  int workers = 1;
  // What is partitioned: the graph given, with the epilogues of its matmuls
  // as nodes again, so that an exchange may come in between; when it is cut
  // in tiles, also with every update after its gradient.
  Graph graph;
  // By node of `graph`; empty for leaves.
  std::map<const Node*, Strategy> strategies;
  // Where a param lives between steps; inputs are shared, but for those that
  // each model has its own of.
  std::map<std::string, Placement> homes;
  // Rows of the tiles that a worker's batch is cut into, one after the other;
  // x is then fetched once and used while it is in cache. 0: not cut.
  int64_t tile_rows = 0;
  absl::Status not_tiled;  // why not, where the batch is large enough
  double us = 0;           // a step, as the search predicts it

  // A line per value: its type, where it is, and what that means in bytes.
  std::string ToString() const;
};

struct PartitionOptions {
  // A batch whose widest value is more than kWholeTiles times this large is cut
  // in tiles of about this size: 64 rows of 784. Measured on Zen 5 (1 MiB of L2
  // a core): 32 and 96 rows are up to 2 % slower at batch 4096.
  int64_t tile_bytes = 208 << 10;
  // Tiles of a worker at most: a program is as long as they are many.
  int64_t max_tiles = 64;
  static constexpr int64_t kWholeTiles = 3;
  // For tests: not 0, costs are multiplied by factors drawn from this, so
  // that the search finds odd placements.
  uint64_t shuffle = 0;
};

// Finds the placements with the least predicted time: what is exchanged, how
// often workers wait for each other, and the largest share of the work that
// one of them has. Searches node by node, keeping the best few hundred ways;
// cuts the batch in row tiles where it is too large for the cache. A graph of
// many models is not searched: each worker has a range of the models, and
// nothing is exchanged; Unimplemented when there are fewer than workers.
//
// REQUIRES: a verified graph; workers >= 1.
absl::StatusOr<Partition> PartitionGraph(const Graph& graph, int workers,
                                         const PartitionOptions& options = {});

// The workers' programs: the nodes of the partition with local types, `slice`
// where a worker takes its part of what it has whole, `exchange` where it
// needs what others have; params have their local types and are named as
// before. Exchanges that wait for the same barrier stand together; their
// number and order is the same for every worker. Rows that an exchange needs
// all at once forbid tiles: `partition` then says so and has one.
absl::StatusOr<std::vector<Graph>> LocalGraphs(Partition& partition);

// Barriers of a step of a worker's program.
int CountExchanges(const Graph& local);

// ---- the parts --------------------------------------------------------------

// What `share` of the node's work is predicted to take, in microseconds.
double NodeUs(const Node& node, double share);

// Fills in the partition of a graph of many models: each worker has a range of
// them and all that they share.
absl::Status SpreadModels(Partition& partition);

// matmul {bias, activation} -> matmul, add_bias, activation.
void UnfuseEpilogues(Graph& graph);
// Updates that are part of a gradient's kernel become nodes of their own:
// matmul {accumulate} -> matmul, add; {bias=update} -> {bias=grad}, add.
void UnfuseUpdates(Graph& graph);

// Cuts the batch of `graph` in tiles of `tile_rows` rows, the last of what is
// left: what is made row by row is made tile after tile, sums over the rows are
// summed up over the tiles, and what needs a sum comes after the last. Rows are
// those that the indices of its gathers name. Unimplemented with the reason
// when an op stands against it; the graph is then unchanged.
absl::Status TileRows(Graph& graph, int64_t tile_rows);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_PASSES_PARTITION_H_
