// SPDX-License-Identifier: Apache-2.0
#include "runtime/dispatch_cost.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "runtime/chain.h"
#include "runtime/clock.h"
#include "runtime/onednn.h"
#include "runtime/status.h"

namespace onestep {
namespace {

constexpr int kCalls = 64;
constexpr int kSteps = 50;
constexpr int kSamples = 20;

// A chain with three places of one float each, and the calls that `make` gives
// for it.
absl::StatusOr<double> NsPerCall(
    absl::FunctionRef<absl::StatusOr<OnednnCall>(Onednn&)> make) {
  std::vector<Slot> slots = {{}};
  for (int64_t i = 0; i < 3; ++i) {
    slots.push_back({"", sizeof(float), i * kBufferAlignment});
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Chain> chain,
                   Chain::Create(std::move(slots), 3 * kBufferAlignment));
  ASSIGN_OR_RETURN(const std::shared_ptr<Onednn> onednn,
                   Onednn::Create(chain.get(), /*threads=*/1));
  for (int slot = 1; slot <= 3; ++slot) chain->FillSlot(slot, 1);
  for (int i = 0; i < kCalls; ++i) {
    ASSIGN_OR_RETURN(OnednnCall made, make(*onednn));
    chain->AddStep({}, std::move(made.call));
  }
  RETURN_IF_ERROR(chain->Finish("", ""));
  RETURN_IF_ERROR(chain->Run(kSteps));  // warm
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kSamples; ++i) {
    const int64_t begin = NowNs();
    RETURN_IF_ERROR(chain->Run(kSteps));
    best = std::min(best, NowNs() - begin);
  }
  return static_cast<double>(best) / (kCalls * kSteps);
}

double ClockNs() {
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kSamples; ++i) {
    const int64_t begin = NowNs();
    for (int r = 0; r < kCalls * kSteps - 1; ++r) NowNs();
    best = std::min(best, NowNs() - begin);
  }
  return static_cast<double>(best) / (kCalls * kSteps);
}

OnednnView Place(int slot) { return {.slot = slot}; }

}  // namespace

absl::StatusOr<DispatchCost> MeasureDispatchCost() {
  using MadeCall = absl::StatusOr<OnednnCall>;
  DispatchCost cost;
  cost.clock_ns = ClockNs();
  ASSIGN_OR_RETURN(cost.call_ns, NsPerCall([](Onednn&) -> MadeCall {
                     return OnednnCall{[] {}, ""};
                   }));
  ASSIGN_OR_RETURN(cost.matmul_ns, NsPerCall([](Onednn& onednn) -> MadeCall {
                     Onednn::MatMul args;
                     args.a = Place(1);
                     args.b = Place(2);
                     args.c = Place(3);
                     return onednn.MakeMatMul(args);
                   }));
  ASSIGN_OR_RETURN(cost.eltwise_ns, NsPerCall([](Onednn& onednn) -> MadeCall {
                     return onednn.MakeEltwise(OnednnEltwise::kRelu, 1,
                                               Place(1), Place(2));
                   }));
  return cost;
}

}  // namespace onestep
