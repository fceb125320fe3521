// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/matmul.cuh"

namespace onestep::cuda {
namespace {

constexpr int64_t kMultiprocessors = 132;  // of an H200

struct Choice {
  Launch launch;
  int64_t cost;
};

// Cost: what a multiprocessor multiplies, over the share of its peak that the
// tile is estimated to reach.
template <int kSize>
Choice With(const Launch& launch, const MatMulParams& p,
            int64_t percent_of_peak) {
  using Tile = MatMulTile<kSize>;
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
      With<128>(ONESTEP_LAUNCH(MatMul<128>, args), params, 80),
      With<64>(ONESTEP_LAUNCH(MatMul<64>, args), params, 65),
      With<32>(ONESTEP_LAUNCH(MatMul<32>, args), params, 45),
      With<16>(ONESTEP_LAUNCH(MatMul<16>, args), params, 25)};
  const Choice* best = choices;
  for (const Choice& choice : choices) {
    if (choice.cost < best->cost) best = &choice;
  }
  return best->launch;
}

}  // namespace onestep::cuda
