// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/search/sample_outcome.h"

#include <cmath>
#include <string>

namespace onestep {
namespace {

Trial TrialOf(int64_t index, double lr, int64_t hidden, uint64_t seed) {
  Trial trial;
  trial.index = index;
  trial.model.widths = {784, hidden, 10};
  trial.lr = lr;
  trial.seed = seed;
  return trial;
}

// The nearer lr is to 0.1, the faster it falls.
TrialEpoch EpochOf(const Trial& trial, int epoch) {
  const double off = std::abs(std::log10(trial.lr) + 1);
  const double loss = (0.1 + 0.4 * off) * (1 + 1.0 / (1 + epoch)) +
                      6.4 / trial.model.widths[1] + 0.01 * trial.seed;
  return {loss, 1 - loss / 4, 1.1 * loss, 1 - loss / 3};
}

TrialResult Finished(const Trial& trial, int epochs) {
  TrialResult result;
  result.trial = trial;
  result.status = TrialStatus::kFinished;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    result.epochs.push_back(EpochOf(trial, epoch));
  }
  return result;
}

GroupReport GroupOf(const std::string& name, bool sparse, int64_t trials,
                    const std::string& way, int64_t programs, double vector_us,
                    double loop_us) {
  GroupReport group;
  group.name = name;
  group.kind = sparse ? name + ", sparse input" : name;
  group.sparse = sparse;
  group.trials = trials;
  group.way = way;
  group.programs = programs;
  group.vector_us = vector_us;
  group.loop_us = loop_us;
  group.lowering = "team of 1";
  return group;
}

}  // namespace

SearchOutcome SampleOutcome(int epochs) {
  SearchOutcome outcome;
  outcome.varied = {"hidden", "lr", "seed"};
  for (const int64_t hidden : {64, 128}) {
    for (const double lr : {0.001, 0.01, 0.1, 1., 10.}) {
      for (const uint64_t seed : {1, 2}) {
        const int64_t index = outcome.results.size();
        outcome.results.push_back(
            Finished(TrialOf(index, lr, hidden, seed), epochs));
        TrialResult& result = outcome.results.back();
        if (lr == 10) {
          result.status = TrialStatus::kDiverged;
          result.diverged_step = seed == 1 ? 17 : 3017;
          result.epochs.resize(seed == 1 ? 0 : 2);
        } else if (lr == 0.001) {
          result.status = TrialStatus::kStopped;
          result.epochs.resize(2);
        }
      }
    }
  }
  outcome.results[7].epochs[1].validation_loss = 12345.5;
  outcome.results[16].status = TrialStatus::kTraining;
  outcome.results[16].epochs.resize(3);
  outcome.results[19].status = TrialStatus::kWaiting;
  outcome.results[19].epochs.clear();
  outcome.results[19].diverged_step = 0;
  outcome.best = 14;
  outcome.groups = {
      GroupOf("784-64-10, batch 32, sgd", true, 10, "vector", 2, 12.5, 20.25),
      GroupOf("784-128-10, batch 32, sgd", false, 10, "loop", 10, 55.5, 52.75)};
  outcome.epochs = {
      {1, 1, 16, 1.5, 0.25}, {1, 2, 12, 1.25, 0.25}, {2, 1, 4, 0.75, 0.125}};
  outcome.resumed = 2;
  outcome.seconds = 4.5;
  outcome.ended = "time limit";
  return outcome;
}

SearchOutcome DivergedOutcome() {
  SearchOutcome outcome;
  TrialResult result;
  result.trial = TrialOf(0, 1e30, 128, 1);
  result.status = TrialStatus::kDiverged;
  result.diverged_step = 7;
  outcome.results = {result};
  outcome.groups = {
      GroupOf("784-128-10, batch 32, sgd", false, 1, "loop", 1, 0, 0)};
  outcome.epochs = {{1, 1, 1, 0.001, 0}};
  outcome.seconds = 0.01;
  return outcome;
}

SearchOutcome LargeOutcome(int trials, int epochs) {
  SearchOutcome outcome;
  outcome.varied = {"lr"};
  for (int i = 0; i < trials; ++i) {
    const double lr = std::pow(10.0, -4 + 5.0 * i / trials);
    outcome.results.push_back(Finished(TrialOf(i, lr, 128, 1), epochs));
  }
  outcome.best = 3 * trials / 5;  // lr 0.1
  for (int i = 0; i < epochs * trials / 32; ++i) {
    outcome.epochs.push_back({1 + i / epochs, 1 + i % epochs, 32,
                              1.23456789012345, 0.1234567890123});
  }
  return outcome;
}

}  // namespace onestep
