// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_SEARCH_INPUT_CHOICES_H_
#define ONESTEP_TRAINER_SEARCH_INPUT_CHOICES_H_

#include <map>
#include <string>
#include <vector>

#include "trainer/cache.h"
#include "trainer/config.h"
#include "trainer/data/dataset.h"
#include "trainer/search/trial.h"
#include "trainer/search/trial_engine.h"

namespace onestep {

// By KindOf a trial.
using InputsByKind = std::map<std::string, InputMode>;

// What the trials of these groups walked.
InputsByKind InputsOf(const std::vector<GroupReport>& groups);

// What --input auto chose for each kind of trial, kept in auto.json (cache.h)
// by kind, machine, data density, version and the flags it hangs on, so that a
// search that is repeated or resumed makes the same choices and repeats its
// bits. Of a search whose input is not auto nothing is kept.
class InputChoices {
 public:
  InputChoices(const Config& config, const Dataset& data);

  // What is kept for the kinds of these trials.
  InputsByKind Of(const std::vector<TrialResult>& results) const;
  void Keep(const std::vector<GroupReport>& groups);

 private:
  std::string KeyOf(const std::string& kind) const;

  const bool chooses_;
  nlohmann::ordered_json key_;  // but for the kind
  Cache cache_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_INPUT_CHOICES_H_
