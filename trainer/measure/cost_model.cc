// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/cost_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

// Floats of the widest vector: a narrower matmul works for lanes that it does
// not have.
constexpr int64_t kLanes = 16;
// Rows so many bytes apart fall into the same sets of an L1 cache.
constexpr int64_t kCacheWay = 4096;
// Calls that differ in how their rows lie are three octaves apart.
constexpr double kApart = 8;
// A wait after less work than this is as short as any.
constexpr double kLeastWorkUs = 0.05;

double Elements(const TensorType& type) {
  return static_cast<double>(type.num_elements());
}

int64_t Columns(const TensorType& type) {
  return type.rank() == 0 ? 1 : type.dims.back();
}

// The largest of the step's results; null: a copy, which has no types.
const TensorType* LargestType(const StepInfo& info) {
  const TensorType* largest = nullptr;
  for (const TensorType& type : info.results) {
    if (largest == nullptr || Elements(type) > Elements(*largest)) {
      largest = &type;
    }
  }
  return largest;
}

KernelCall MatMulCall(const StepInfo& info, KernelCall call) {
  const bool trans_a = absl::StrContains(info.label, "trans_a=true");
  const bool trans_b = absl::StrContains(info.label, "trans_b=true");
  if (trans_a) absl::StrAppend(&call.kernel, " a^T");
  if (trans_b) absl::StrAppend(&call.kernel, " b^T");
  const TensorType& y = info.results[0];
  const auto m = static_cast<double>(y.dims[0]);
  const auto n =
      static_cast<double>((y.dims[1] + kLanes - 1) / kLanes * kLanes);
  const auto k = static_cast<double>(info.operands[0].dims[trans_a ? 0 : 1]);
  const bool aliased =
      y.dims[1] * static_cast<int64_t>(sizeof(float)) % kCacheWay == 0;
  call.size = {m, n, k, aliased ? kApart : 1};
  call.work = 2 * m * n * k;
  return call;
}

// Products over nonzeros: of x [batch, k] with w, or of it and dz [batch, n].
KernelCall SparseCall(const StepInfo& info, KernelCall call) {
  const auto batch =
      static_cast<double>(info.op == "sparse_outer" ? info.operands[1].dims[0]
                                                    : info.results[0].dims[0]);
  const int64_t columns = Columns(info.results[0]);
  const auto n = static_cast<double>(columns);
  call.work = std::max(1.0, info.flops);
  call.size = {batch, n, std::max(1.0, info.flops / (2 * batch * n)),
               columns % kLanes == 0 ? 1 : kApart};
  return call;
}

bool IsGather(const StepInfo& info) {
  return absl::StartsWith(info.op, "gather_") && !info.operands.empty() &&
         info.operands[0].rank() == 2;
}

}  // namespace

void CoreDistance::Add(double ns) {
  least_ns = most_ns == 0 ? ns : std::min(least_ns, ns);
  most_ns = std::max(most_ns, ns);
}

std::string CoreDistance::ChangeText(double now_ns) const {
  constexpr double kLikely = 2;  // of a median of many round trips
  if (now_ns < kLikely * most_ns && least_ns < kLikely * now_ns) return "";
  if (now_ns == 0 || most_ns == 0) return "";
  return absl::StrFormat(
      "cores are %.0f ns apart now and were %.0f to %.0f when calls were "
      "timed: with several threads steps may take other times",
      now_ns, least_ns, most_ns);
}

Json ToJson(const MachineCosts& costs) {
  Json json;
  json["seconds"] = costs.seconds;
  json["peak_gflops"] = costs.peak_gflops;
  json["core_ns"] = {costs.cores.least_ns, costs.cores.most_ns};
  for (const MachineCosts::Copy& copy : costs.copies) {
    json["copies"].push_back({{"bytes", copy.bytes}, {"gbs", copy.gbs}});
  }
  json["calls"] = costs.calls.ToJson();
  return json;
}

std::optional<MachineCosts> MachineCostsOf(const Json& json) {
  MachineCosts costs;
  try {
    costs.seconds = json.at("seconds").get<double>();
    costs.peak_gflops = json.at("peak_gflops").get<double>();
    costs.cores = {json.at("core_ns").at(0).get<double>(),
                   json.at("core_ns").at(1).get<double>()};
    bool positive = costs.seconds > 0 && costs.peak_gflops > 0;
    for (const Json& copy : json.at("copies")) {
      costs.copies.push_back(
          {copy.at("bytes").get<double>(), copy.at("gbs").get<double>()});
      positive &= costs.copies.back().bytes > 0 && costs.copies.back().gbs > 0;
    }
    std::optional<CallCosts> calls = CallCosts::FromJson(json.at("calls"));
    if (!calls || costs.copies.empty() || !positive) return std::nullopt;
    costs.calls = *std::move(calls);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  return costs;
}

double MachineCosts::Bandwidth(double bytes) const {
  CHECK(!copies.empty());
  const auto nearest = std::min_element(
      copies.begin(), copies.end(), [&](const Copy& a, const Copy& b) {
        return std::abs(std::log(a.bytes / bytes)) <
               std::abs(std::log(b.bytes / bytes));
      });
  return nearest->gbs;
}

KernelCall CallOf(const StepInfo& info, const StepContext& context) {
  CHECK(info.kind != StepKind::kWait);
  KernelCall call;
  call.kernel = info.op;
  if (info.kind == StepKind::kExchange) {
    call.family = absl::StrCat("workers ", context.workers);
    call.size = {std::max(1.0, info.bytes)};
    call.work = std::max(1.0, info.bytes);
    return call;
  }
  // "onednn brg:avx512_core": which of its kernels it takes is its affair.
  const std::vector<std::string> words =
      absl::StrSplit(info.implementation, absl::ByAnyChar(" ,"));
  call.family = words[0];
  if (context.threads > 1) absl::StrAppend(&call.family, " x", context.threads);
  if (info.op == "matmul") return MatMulCall(info, std::move(call));
  if (absl::StartsWith(info.op, "sparse_")) {
    return SparseCall(info, std::move(call));
  }
  const TensorType* const type = LargestType(info);
  if (type == nullptr) {
    call.size = {std::max(1.0, info.bytes)};
    call.work = std::max(1.0, info.bytes);
    return call;
  }
  const double cols = static_cast<double>(Columns(*type));
  const double rows = Elements(*type) / cols;
  call.size = {rows, cols};
  call.work = rows * cols;
  if (IsGather(info)) {
    const auto row_bytes = static_cast<double>(info.operands[0].dims[1]);
    call.size = {rows, row_bytes,
                 context.fetched
                     ? rows * row_bytes
                     : std::max(rows * row_bytes, context.table_bytes)};
    call.work = rows * row_bytes;
  }
  return call;
}

KernelCall WaitAfter(double us, int workers) {
  KernelCall call;
  call.kernel = "wait";
  call.family = absl::StrCat("barrier of ", workers);
  call.size = {std::exp2(std::round(std::log2(std::max(us, kLeastWorkUs))))};
  return call;
}

StepContext ContextOf(const Compiled& compiled, int threads,
                      double table_bytes) {
  StepContext context;
  context.table_bytes = table_bytes;
  context.workers = compiled.executable->workers();
  context.threads = compiled.team ? 1 : threads;
  for (const StepInfo& info : compiled.executable->steps()) {
    context.fetched |= absl::StrContains(info.implementation, "fetches ahead");
  }
  return context;
}

StepCost EstimateStep(const MachineCosts& costs, const Compiled& compiled,
                      int threads, double table_bytes) {
  const StepContext context = ContextOf(compiled, threads, table_bytes);
  StepCost cost;
  double since_wait_us = 0;
  for (const StepInfo& info : compiled.executable->steps()) {
    const bool wait = info.kind == StepKind::kWait;
    const KernelCall call = wait ? WaitAfter(since_wait_us, context.workers)
                                 : CallOf(info, context);
    const double copy_us =
        info.bytes / costs.Bandwidth(std::max(1.0, info.bytes)) * 1e-3;
    std::optional<CallCosts::Estimate> estimate = costs.calls.Find(call);
    if (!estimate) {
      if (!wait) cost.unknown.push_back(call.kernel + ", " + call.family);
      estimate = CallCosts::Estimate{copy_us, 0};
    }
    cost.us += estimate->us;
    since_wait_us = wait ? 0 : since_wait_us + estimate->us;
    if (info.kind != StepKind::kOp) {
      cost.launch_us += estimate->us;
      continue;
    }
    cost.launch_us += estimate->overhead_us;
    const bool computes =
        info.flops / (costs.peak_gflops * context.threads) * 1e-3 > copy_us;
    (computes ? cost.compute_us : cost.memory_us) +=
        estimate->us - estimate->overhead_us;
  }
  return cost;
}

}  // namespace onestep
