// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_CALL_COSTS_H_
#define ONESTEP_TRAINER_MEASURE_CALL_COSTS_H_

#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace onestep {

// A call of a kernel, as far as its time depends on it.
struct KernelCall {
  std::string kernel;  // "matmul a^T"
  // Calls of one family have the same fixed cost: "cpu", "onednn x2".
  std::string family;
  // What its rate depends on, all above 0: rows, columns, ...
  std::vector<double> size;
  double work = 1;  // what its time grows with

  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};

// Times of calls, told from those of calls that were measured.
//
// A call takes the fixed cost of its family and `work` over a rate. The fixed
// cost is kFixedShare of the cheapest call of the family that was measured.
// The rate's logarithm is the mean of those of the measured calls of the same
// kernel, each weighed by the inverse fifth power of its distance in the
// logarithms of the sizes (inverse distance weighting; Shepard, ACM 1968).
class CallCosts {
 public:
  static constexpr double kFixedShare = 0.7;

  // Of equal calls the fastest counts: what is slower was disturbed.
  // `overhead_us`: of `us`, what forks and joins took.
  // REQUIRES: us > overhead_us >= 0.
  void Add(const KernelCall& call, double us, double overhead_us = 0);

  struct Estimate {
    double us = 0;
    double overhead_us = 0;  // the fixed cost, and forks and joins
  };
  // nullopt: no call of this kernel and family, and with as many sizes, was
  // measured.
  std::optional<Estimate> Find(const KernelCall& call) const;

  int points() const { return static_cast<int>(points_.size()); }

  nlohmann::ordered_json ToJson() const;
  // nullopt for what ToJson did not write.
  static std::optional<CallCosts> FromJson(const nlohmann::ordered_json& json);

 private:
  struct Point {
    KernelCall call;
    double us, overhead_us;
  };

  double FixedUs(const std::string& family) const;

  std::vector<Point> points_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_CALL_COSTS_H_
