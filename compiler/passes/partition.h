// SPDX-License-Identifier: Apache-2.0
// Partitions a train step over W workers that share memory, as a model is
// partitioned over devices: one program per worker.
#ifndef ONESTEP_COMPILER_PASSES_PARTITION_H_
#define ONESTEP_COMPILER_PASSES_PARTITION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace onestep {

// The type of worker w's part of a value of this type and placement.
TensorType LocalType(TensorType type, const Placement& placement, int workers,
                     int worker);

// The placements of all values of a graph, and the strategy of every node, on W
// workers.
struct Partition {
  int workers = 1;
  // The partitioned graph: a copy of the given one in which the epilogues of
  // matmuls are separate nodes, so that an exchange may be inserted before
  // them. In a tiled graph the updates are separate nodes too.
  Graph graph;
  // By node of `graph`; leaves and constants have none.
  std::map<const Node*, Strategy> strategies;
  // The placement of each param between steps, by name. Inputs are replicated;
  // inputs with a model axis are split by models.
  std::map<std::string, Placement> homes;
  // The number of rows per tile. Each worker processes its rows of the batch
  // tile by tile, so that a tile of x is fetched once and used while it is in
  // the cache. 0: the batch is not tiled.
  int64_t tile_rows = 0;
  absl::Status not_tiled;  // the reason why a large batch is not tiled
  double us = 0;           // predicted microseconds per step

  // One line per value with its type, its placement and worker 0's local type.
  std::string ToString() const;
};

struct PartitionOptions {
  // A batch whose widest value has more than kWholeTiles * tile_bytes bytes is
  // processed in tiles of about tile_bytes: 64 rows of 784. Measured on Zen 5
  // (1 MiB of L2 per core): 32 and 96 rows are up to 2 % slower at batch 4096.
  int64_t tile_bytes = 208 << 10;
  // The maximal number of tiles per worker; the program's length grows with it.
  int64_t max_tiles = 64;
  static constexpr int64_t kWholeTiles = 3;
  // For tests: a nonzero value seeds random factors of the costs, so that the
  // search chooses unusual placements.
  uint64_t shuffle = 0;
};

// Chooses the placements with the least predicted time: a beam search over the
// nodes, whose cost counts the exchanged bytes, the barriers, and the largest
// share of the work that one worker has. A batch that is too large for the
// cache is processed in row tiles. A graph with a model axis is not searched:
// each worker gets a range of the models, and nothing is exchanged. Returns
// Unimplemented when a node cannot be split over the workers or when there are
// fewer models than workers.
//
// REQUIRES: the graph is verified; workers >= 1.
absl::StatusOr<Partition> PartitionGraph(const Graph& graph, int workers,
                                         const PartitionOptions& options = {});

// Returns one graph per worker. It has the nodes of the partition with local
// types, a `slice` where a worker takes its part of a replicated value, and an
// `exchange` where it needs the parts of other workers. Params keep their names
// and have their local types. Exchanges that share a barrier are adjacent; all
// workers have the same sequence of exchanges. If an exchange needs all rows at
// once, the graphs are made without tiles, and partition.tile_rows and
// partition.not_tiled are set accordingly.
absl::StatusOr<std::vector<Graph>> LocalGraphs(Partition& partition);

// The number of barriers per step in a worker's graph.
int CountExchanges(const Graph& local);

// ---- the steps of PartitionGraph and LocalGraphs ----------------------------

// The predicted time in microseconds of the fraction `share` of the node's
// work.
double NodeUs(const Node& node, double share);

// Fills in the partition of a graph with a model axis: each worker gets a range
// of the models and a copy of all values that they share. Returns Unimplemented
// when there are fewer models than workers.
absl::Status SpreadModels(Partition& partition);

// Splits fused epilogues: matmul {bias, activation} -> matmul, add_bias,
// activation.
void UnfuseEpilogues(Graph& graph);
// Splits updates that are fused into a gradient's op:
// matmul {accumulate} -> matmul, add; {bias=update} -> {bias=grad}, add.
void UnfuseUpdates(Graph& graph);

// Processes the batch of `graph` in tiles of `tile_rows` rows; the last tile
// may be smaller. Rowwise nodes are repeated for each tile, sums over the rows
// are accumulated over the tiles, and nodes that read such a sum come after the
// last tile. The rows of the batch are those of the indices of the gathers.
// Returns Unimplemented with the reason when an op needs all rows; the graph is
// then unchanged.
absl::Status TileRows(Graph& graph, int64_t tile_rows);

}  // namespace onestep

#endif  // ONESTEP_COMPILER_PASSES_PARTITION_H_
