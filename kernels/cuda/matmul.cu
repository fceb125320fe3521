// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/matmul.cuh"

namespace onestep::cuda {
namespace {

// From the one that reuses most of what it loads to the one that spreads small
// products, with long sums, over most multiprocessors.
using Tile128 = MatMulTile<128, 128, 8, 8, 8, 1>;
using Tile64 = MatMulTile<64, 64, 16, 8, 4, 2>;
using Tile32 = MatMulTile<32, 32, 8, 4, 4, 4>;
using Tile16 = MatMulTile<16, 16, 16, 4, 2, 8>;

constexpr int64_t kMultiprocessors = 132;  // of an H200

struct Choice {
  Launch launch;
  int64_t cost;
};

// Cost: what a multiprocessor multiplies, over the share of its peak that the
// tile is estimated to reach.
template <class Tile>
Choice With(const Launch& launch, const MatMulParams& p,
            int64_t percent_of_peak) {
  const int64_t blocks = CeilDiv(p.m, Tile::kM) * CeilDiv(p.n, Tile::kN);
  constexpr int64_t kRound = int64_t{Tile::kK} * Tile::kSplit;
  const int64_t products =
      int64_t{Tile::kM} * Tile::kN * CeilDiv(p.k, kRound) * kRound;
  return {Sized(launch, blocks, Tile::kThreads, Tile::kSharedBytes),
          CeilDiv(blocks, kMultiprocessors) * products * 100 / percent_of_peak};
}

}  // namespace

Launch MatMul(const MatMulParams& params) {
  const MatMulArgs args = {params, ByFours(params.n, {params.y})};
  const Choice choices[] = {
      With<Tile128>(ONESTEP_LAUNCH(MatMul<Tile128>, args), params, 80),
      With<Tile64>(ONESTEP_LAUNCH(MatMul<Tile64>, args), params, 65),
      With<Tile32>(ONESTEP_LAUNCH(MatMul<Tile32>, args), params, 45),
      With<Tile16>(ONESTEP_LAUNCH(MatMul<Tile16>, args), params, 25)};
  const Choice* best = choices;
  for (const Choice& choice : choices) {
    if (choice.cost < best->cost) best = &choice;
  }
  return best->launch;
}

}  // namespace onestep::cuda
