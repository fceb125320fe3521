// SPDX-License-Identifier: Apache-2.0
#include "trainer/search/way.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "trainer/measure/step_bench.h"

namespace onestep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;  // after one to warm up
constexpr int64_t kVectorModels = 16;
constexpr int64_t kUsualL2Bytes = 1 << 20;  // where the system does not say

// A way and, to time it, a bundle for each busy worker.
struct Timed {
  Way way;
  ProgramSet* set = nullptr;
  int64_t trials = 0;
  int64_t bundles_wanted = 0;  // as many programs are of use later
  std::vector<ProgramSet::Lease> programs;
  std::vector<std::unique_ptr<TrialState>> copies;
  std::vector<Bundle> bundles;
  double us = std::numeric_limits<double>::infinity();
};

absl::StatusOr<std::vector<Tensor>> CopyOf(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) {
    Tensor copy{tensor.name, tensor.dims, Buffer()};
    ASSIGN_OR_RETURN(copy.data, Buffer::Create(tensor.data.bytes()));
    std::memcpy(copy.data.data(), tensor.data.data(), copy.data.bytes());
    copies.push_back(std::move(copy));
  }
  return copies;
}

absl::StatusOr<Timed> Prepare(const WayTiming& timing, const Way& way,
                              const std::vector<TrialState*>& trials,
                              bool to_time) {
  Timed timed;
  timed.way = way;
  const int workers = timing.team.workers();
  const std::vector<int64_t> sizes =
      BundleSizes(way, std::ssize(trials), workers, timing.most);
  ASSIGN_OR_RETURN(timed.set,
                   timing.pool.Get(trials[0]->trial, sizes[0], way.sparse));
  if (!to_time) return timed;
  timed.trials = std::ssize(trials);
  timed.bundles_wanted = std::ssize(sizes);
  const int64_t busy =
      timing.alone ? std::min<int64_t>(workers, std::ssize(sizes)) : workers;
  for (int64_t b = 0; b < busy; ++b) {
    std::vector<TrialState*> members;
    for (int64_t i = 0; i < sizes[0]; ++i) {
      auto copy = std::make_unique<TrialState>();
      copy->trial = trials[i]->trial;
      copy->trial.lr = kTimingRate;
      ASSIGN_OR_RETURN(copy->params, CopyOf(trials[i]->params));
      ASSIGN_OR_RETURN(copy->states, CopyOf(trials[i]->states));
      members.push_back(copy.get());
      timed.copies.push_back(std::move(copy));
    }
    ASSIGN_OR_RETURN(ProgramSet::Lease program, timed.set->Take());
    ASSIGN_OR_RETURN(Bundle bundle,
                     Bundle::Create(timing.plan, std::move(members),
                                    program->models_innermost()));
    timed.programs.push_back(std::move(program));
    bundle.StartEpoch(1);
    timed.bundles.push_back(std::move(bundle));
  }
  return timed;
}

// Runs steps of the first epoch, over and over, for some time; microseconds of
// one.
absl::StatusOr<double> StepUs(BundleProgram& program, Bundle& bundle,
                              int64_t steps_per_epoch, double round_us) {
  const Clock::time_point start = Clock::now();
  int64_t step = 0, done = 0, count = 1;
  while (true) {
    RETURN_IF_ERROR(program.Train(bundle, step, count));
    done += count;
    step = (step + count) % steps_per_epoch;
    const std::chrono::duration<double, std::micro> us = Clock::now() - start;
    const double step_us = us.count() / static_cast<double>(done);
    if (us.count() >= round_us) return step_us;
    const double left = (round_us - us.count()) / std::max(step_us, 1e-3);
    count = std::clamp<int64_t>(static_cast<int64_t>(left / 2), 1,
                                steps_per_epoch - step);
  }
}

absl::StatusOr<double> TimeRound(const WayTiming& timing, Timed& timed) {
  const int64_t steps = timing.plan.StepsPerEpoch(timed.copies[0]->trial.batch);
  std::vector<absl::StatusOr<double>> us(timed.bundles.size(), 0.0);
  timing.team.Run([&](int worker) {
    if (worker >= std::ssize(timed.bundles)) return;
    us[worker] = StepUs(*timed.programs[worker], timed.bundles[worker], steps,
                        timing.round_us);
  });
  double steps_per_us = 0;  // of one model, by all workers
  double slowest = 0;
  for (size_t b = 0; b < us.size(); ++b) {
    RETURN_IF_ERROR(us[b].status());
    timed.set->step_us = *us[b];
    slowest = std::max(slowest, *us[b]);
    steps_per_us += static_cast<double>(timed.bundles[b].models()) / *us[b];
  }
  // With a bundle to a worker all wait for the largest; else they take turns.
  return timing.alone && timed.bundles_wanted <= timing.team.workers()
             ? slowest / static_cast<double>(timed.trials)
             : 1 / steps_per_us;
}

const char* NameOfWay(const Way& way) {
  if (way.vector) return way.sparse ? "vector, sparse" : "vector";
  return way.sparse ? "loop, sparse" : "loop";
}

}  // namespace

std::vector<int64_t> BundleSizes(const Way& way, int64_t trials, int workers,
                                 int64_t most) {
  CHECK(trials >= 1);
  if (!way.vector) return std::vector<int64_t>(trials, 1);
  const int64_t least = (trials + most - 1) / most;
  const int64_t even = (least + workers - 1) / workers * workers;
  const int64_t bundles = std::max(least, std::min(even, trials / 2));
  std::vector<int64_t> sizes;
  for (int64_t b = 0; b < bundles; ++b) {
    sizes.push_back(trials / bundles + (b < trials % bundles));
  }
  return sizes;
}

double TimingUs(double round_us, int64_t ways) {
  return static_cast<double>((1 + kRounds) * ways) * round_us;
}

bool LikelyVector(int64_t weight_bytes) {
  const int64_t l2_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return kVectorModels * weight_bytes <=
         (l2_bytes > 0 ? l2_bytes : kUsualL2Bytes) / 2;
}

absl::StatusOr<WayChoice> ChooseWay(const WayTiming& timing,
                                    const std::vector<Way>& ways,
                                    const std::vector<TrialState*>& trials) {
  WayChoice choice;
  const bool to_time = timing.round_us > 0 && ways.size() > 1;
  std::vector<Timed> all;
  absl::Status refusal;
  for (const Way& way : ways) {
    absl::StatusOr<Timed> timed = Prepare(timing, way, trials, to_time);
    if (timed.ok()) {
      all.push_back(*std::move(timed));
      if (to_time) continue;
      choice.way = way;
      return choice;
    }
    if (!absl::IsUnimplemented(timed.status())) return timed.status();
    refusal.Update(timed.status());
    choice.refused.push_back(
        absl::StrCat(NameOfWay(way), ": ", timed.status().message()));
  }
  if (all.empty()) return refusal;
  for (int round = 0; round <= kRounds; ++round) {
    for (Timed& timed : all) {
      ASSIGN_OR_RETURN(const double us, TimeRound(timing, timed));
      if (round > 0) timed.us = std::min(timed.us, us);
    }
  }
  const auto faster = [](const Timed& a, const Timed& b) {
    return a.us < b.us;
  };
  const auto fastest = std::min_element(all.begin(), all.end(), faster);
  choice.way = fastest->way;
  for (auto timed = all.begin(); timed != all.end(); ++timed) {
    timed->programs.clear();
    if (timed == fastest) {
      timed->set->Trim(timed->bundles_wanted);
    } else {
      timing.pool.Forget(*timed->set);
    }
  }
  for (const Timed& timed : all) {
    (timed.way.vector ? choice.vector_us : choice.loop_us) = timed.us;
  }
  return choice;
}

}  // namespace onestep
