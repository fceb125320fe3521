// SPDX-License-Identifier: Apache-2.0
#include "tests/models.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace onestep {

TensorMap Interleave(const Graph& graph, const std::vector<TensorMap>& models) {
  TensorMap all = models[0];
  for (const auto& node : graph.nodes()) {
    if (!node->def().Has(kLeaf) || node->models() == 0) continue;
    std::vector<double>& values = all.at(node->name());
    values.clear();
    for (int64_t i = 0; i < node->types[0].num_elements(); ++i) {
      for (const TensorMap& model : models) {
        values.push_back(model.at(node->name())[i]);
      }
    }
  }
  return all;
}

bool SameBits(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return true;
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

void ExpectModel(const TensorMap& all, size_t models, size_t k,
                 const TensorMap& want) {
  for (const auto& [name, values] : want) {
    const std::vector<double>& got = all.at(name);
    const bool shared = got.size() == values.size();
    ASSERT_TRUE(shared || got.size() == values.size() * models) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_PRED2(SameBits, got[shared ? i : i * models + k], values[i])
          << "model " << k << " of " << models << ", " << name << "[" << i
          << "]";
    }
  }
}

}  // namespace onestep
