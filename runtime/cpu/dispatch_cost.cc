// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/dispatch_cost.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/cpu/chain.h"
#include "runtime/cpu/onednn.h"

namespace onestep {
namespace {

constexpr int kCalls = 64;
constexpr int kSteps = 50;
constexpr int kSamples = 20;

struct CallTimes {
  double ns = 0, traced_ns = 0;  // per call
};

// Times a chain of kCalls calls made by `make`, with three slots of one float
// each. Takes the minimum of the samples, because disturbances only add time.
absl::StatusOr<CallTimes> TimeCalls(
    absl::FunctionRef<absl::StatusOr<OnednnCall>(Onednn&)> make) {
  std::vector<Slot> slots = {{}};
  for (int64_t i = 0; i < 3; ++i) {
    slots.push_back({"", sizeof(float), i * kBufferAlignment});
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Chain> chain,
                   Chain::Create(std::move(slots), 3 * kBufferAlignment));
  ASSIGN_OR_RETURN(Onednn onednn, Onednn::Create(chain.get(), /*threads=*/1));
  for (int slot = 1; slot <= 3; ++slot) chain->FillSlot(slot, 1);
  for (int i = 0; i < kCalls; ++i) {
    ASSIGN_OR_RETURN(OnednnCall made, make(onednn));
    chain->AddStep({}, std::move(made.call));
  }
  RETURN_IF_ERROR(chain->Finish("", ""));
  RETURN_IF_ERROR(chain->Run(kSteps));  // warm
  int64_t ns = std::numeric_limits<int64_t>::max(), traced_ns = ns;
  StepTrace trace;
  for (int i = 0; i < kSamples; ++i) {
    const int64_t begin = NowNs();
    RETURN_IF_ERROR(chain->Run(kSteps));
    ns = std::min(ns, NowNs() - begin);
    RETURN_IF_ERROR(chain->RunTraced(kSteps, trace));
    traced_ns = std::min(traced_ns, trace.end - trace.begin);
  }
  constexpr double kAll = kCalls * kSteps;
  return CallTimes{static_cast<double>(ns) / kAll,
                   static_cast<double>(traced_ns) / kAll};
}

OnednnView Place(int slot) { return {.slot = slot}; }

// The resolution of NowTicks: the median difference of consecutive readings
// that differ.
double ClockStepNs() {
  std::array<int64_t, 10'000> ticks;
  TickScale scale;
  for (int64_t& tick : ticks) tick = NowTicks();
  scale.End();
  const int64_t ns = scale.ToNs(ticks.back()) - scale.ToNs(ticks.front());
  const int64_t all = std::max<int64_t>(1, ticks.back() - ticks.front());
  std::vector<int64_t> steps;
  for (size_t i = 1; i < ticks.size(); ++i) {
    if (ticks[i] > ticks[i - 1]) steps.push_back(ticks[i] - ticks[i - 1]);
  }
  if (steps.empty()) return 0;
  std::nth_element(steps.begin(), steps.begin() + steps.size() / 2,
                   steps.end());
  return static_cast<double>(ns) / static_cast<double>(all) *
         static_cast<double>(steps[steps.size() / 2]);
}

}  // namespace

absl::StatusOr<DispatchCost> MeasureDispatchCost() {
  using MadeCall = absl::StatusOr<OnednnCall>;
  ASSIGN_OR_RETURN(const CallTimes empty, TimeCalls([](Onednn&) -> MadeCall {
                     return OnednnCall{[] {}, ""};
                   }));
  ASSIGN_OR_RETURN(const CallTimes matmul,
                   TimeCalls([](Onednn& onednn) -> MadeCall {
                     Onednn::MatMul args;
                     args.a = Place(1);
                     args.b = Place(2);
                     args.c = Place(3);
                     return onednn.MakeMatMul(args);
                   }));
  ASSIGN_OR_RETURN(
      const CallTimes eltwise, TimeCalls([](Onednn& onednn) -> MadeCall {
        return onednn.MakeActivation(Activation::kRelu, Place(1), Place(2));
      }));
  DispatchCost cost;
  cost.clock_ns = std::max(0.0, empty.traced_ns - empty.ns);
  cost.clock_step_ns = ClockStepNs();
  cost.call_ns = empty.ns;
  cost.matmul_ns = matmul.ns;
  cost.eltwise_ns = eltwise.ns;
  return cost;
}

}  // namespace onestep
