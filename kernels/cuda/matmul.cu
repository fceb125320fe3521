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
Choice With(MatMulArgs args, int64_t percent_of_peak) {
  const MatMulParams& p = args.params;
  const int64_t tiles_n = CeilDiv(p.n, Tile::kN);
  const int64_t blocks = CeilDiv(p.m, Tile::kM) * tiles_n;
  const int64_t rounds = CeilDiv(p.k, Tile::kK * Tile::kSplit);
  const int64_t products =
      int64_t{Tile::kM} * Tile::kN * rounds * Tile::kK * Tile::kSplit;
  args.tiles_n = static_cast<uint32_t>(tiles_n);
  const Launch launch = Sized(ONESTEP_LAUNCH(MatMul<Tile>, args), blocks,
                              Tile::kThreads, Tile::kSharedBytes);
  return {launch,
          CeilDiv(blocks, kMultiprocessors) * products * 100 / percent_of_peak};
}

}  // namespace

Launch MatMul(const MatMulParams& params) {
  const MatMulArgs args = {params, 0, ByFours(params.n, {params.y})};
  Choice best = With<Tile128>(args, 80);
  for (const Choice& choice : {With<Tile64>(args, 65), With<Tile32>(args, 45),
                               With<Tile16>(args, 25)}) {
    if (choice.cost < best.cost) best = choice;
  }
  return best.launch;
}

}  // namespace onestep::cuda
