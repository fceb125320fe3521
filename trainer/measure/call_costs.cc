// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/call_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/base/status.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

// Squared distance, in octaves, within which measured calls count alike: an
// exact hit must not drown the noise of one sample.
constexpr double kNear = 0.02;

double SquaredDistance(const std::vector<double>& a,
                       const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double octaves = std::log2(a[i] / b[i]);
    sum += octaves * octaves;
  }
  return sum;
}

}  // namespace

void CallCosts::Add(const KernelCall& call, double us, double overhead_us) {
  CHECK(us > overhead_us && overhead_us >= 0);
  for (Point& point : points_) {
    if (point.call != call) continue;
    if (us < point.us) point = {call, us, overhead_us};
    return;
  }
  points_.push_back({call, us, overhead_us});
}

double CallCosts::FixedUs(const std::string& family) const {
  double least = std::numeric_limits<double>::infinity();
  for (const Point& point : points_) {
    if (point.call.family == family) least = std::min(least, point.us);
  }
  return kFixedShare * least;
}

std::optional<CallCosts::Estimate> CallCosts::Find(
    const KernelCall& call) const {
  const double fixed = FixedUs(call.family);
  double weights = 0, log_us_per_work = 0, overhead_share = 0;
  for (const Point& point : points_) {
    if (point.call.kernel != call.kernel || point.call.family != call.family ||
        point.call.size.size() != call.size.size()) {
      continue;
    }
    const double weight =
        std::pow(SquaredDistance(point.call.size, call.size) + kNear, -2.5);
    const double us = point.us - fixed;
    weights += weight;
    log_us_per_work += weight * std::log(us / point.call.work);
    overhead_share += weight * std::min(1.0, point.overhead_us / us);
  }
  if (weights == 0) return std::nullopt;
  const double us = call.work * std::exp(log_us_per_work / weights);
  return Estimate{fixed + us, fixed + us * overhead_share / weights};
}

Json CallCosts::ToJson() const {
  Json json = Json::array();
  for (const Point& point : points_) {
    json.push_back({{"kernel", point.call.kernel},
                    {"family", point.call.family},
                    {"size", point.call.size},
                    {"work", point.call.work},
                    {"us", point.us},
                    {"overhead_us", point.overhead_us}});
  }
  return json;
}

std::optional<CallCosts> CallCosts::FromJson(const Json& json) {
  CallCosts costs;
  try {
    for (const Json& point : json) {
      const KernelCall call = {point.at("kernel").get<std::string>(),
                               point.at("family").get<std::string>(),
                               point.at("size").get<std::vector<double>>(),
                               point.at("work").get<double>()};
      const auto us = point.at("us").get<double>();
      const auto overhead_us = point.at("overhead_us").get<double>();
      const bool positive =
          call.work > 0 && std::all_of(call.size.begin(), call.size.end(),
                                       [](double size) { return size > 0; });
      if (!positive || overhead_us < 0 || us <= overhead_us) {
        return std::nullopt;
      }
      costs.points_.push_back({call, us, overhead_us});
    }
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (costs.points_.empty()) return std::nullopt;
  return costs;
}

}  // namespace onestep
