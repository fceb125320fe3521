// SPDX-License-Identifier: Apache-2.0
#include "tests/run_chain.h"

#include <cmath>
#include <limits>

#include "runtime/base/buffer.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

template <typename T>
void Store(const std::vector<double>& values, Buffer& buffer) {
  for (size_t i = 0; i < values.size(); ++i) {
    buffer.as<T>()[i] = static_cast<T>(values[i]);
  }
}

std::vector<double> LoadF32(const Buffer& buffer, int64_t n) {
  return std::vector<double>(buffer.as<float>(), buffer.as<float>() + n);
}

// Of all models.
int64_t Elements(const TensorType& type) {
  return type.bytes() / DTypeBytes(type.dtype);
}

}  // namespace

absl::StatusOr<TensorMap> RunChain(const Graph& graph,
                                   const TensorMap& bindings,
                                   KernelChoice choice, int threads) {
  Graph copy = graph.Clone();
  ASSIGN_OR_RETURN(auto chain, LowerToChain(copy, choice, threads));
  return RunExecutable(*chain, graph, bindings);
}

absl::StatusOr<TensorMap> RunExecutable(Executable& executable,
                                        const Graph& graph,
                                        const TensorMap& bindings,
                                        int64_t steps) {
  std::map<std::string, Buffer> leaves, results;
  for (const auto& node : graph.nodes()) {
    if (!node->def().Has(kLeaf)) continue;
    const TensorType& type = node->types[0];
    ASSIGN_OR_RETURN(Buffer buffer, Buffer::Create(type.bytes()));
    const std::vector<double>& values = bindings.at(node->name());
    CHECK(std::ssize(values) == Elements(type));
    if (type.dtype == DType::kF32) Store<float>(values, buffer);
    if (type.dtype == DType::kU8) Store<uint8_t>(values, buffer);
    if (type.dtype == DType::kI32) Store<int32_t>(values, buffer);
    RETURN_IF_ERROR(executable.Bind(node->name(), buffer.data()));
    leaves.emplace(node->name(), std::move(buffer));
  }
  for (const Output& out : graph.outputs()) {
    if (out.kind == Output::kUpdate) continue;
    ASSIGN_OR_RETURN(Buffer buffer, Buffer::Create(out.value.type().bytes()));
    RETURN_IF_ERROR(executable.Bind(out.name, buffer.data()));
    results.emplace(out.name, std::move(buffer));
  }
  RETURN_IF_ERROR(executable.Run(steps));
  RETURN_IF_ERROR(executable.ParamsToHost());
  TensorMap values;
  for (const Output& out : graph.outputs()) {
    const auto& from = out.kind == Output::kUpdate ? leaves : results;
    CHECK(out.value.type().dtype == DType::kF32);
    values[out.name] = LoadF32(from.at(out.name), Elements(out.value.type()));
  }
  return values;
}

TensorMap RoundToLeaves(const Graph& graph, TensorMap bindings) {
  for (auto& [name, values] : bindings) {
    const Node* const leaf = graph.FindLeaf(name);
    if (leaf == nullptr || leaf->types[0].dtype != DType::kF32) continue;
    for (double& v : values) v = static_cast<float>(v);
  }
  return bindings;
}

double Nmse(const std::vector<double>& x, const std::vector<double>& y) {
  CHECK(x.size() == y.size());
  double error = 0, norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) && std::isfinite(y[i])) {
      return std::numeric_limits<double>::infinity();
    }
    error += (x[i] - y[i]) * (x[i] - y[i]);
    norm += y[i] * y[i];
  }
  return norm > 0 ? error / norm : error;
}

}  // namespace onestep
