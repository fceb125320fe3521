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

// What --input auto chose for each kind of trial of a search, kept in auto.json
// (cache.h) by kind and number of its trials, machine, data density, version
// and the flags it hangs on, so that a search that is repeated or resumed makes
// the same choices and repeats its bits. Where the input is not auto nothing
// is kept.
class InputChoices {
 public:
  // `results` of all trials of the search.
  InputChoices(const Config& config, const Dataset& data,
               const std::vector<TrialResult>& results);

  InputsByKind Kept() const;
  void Keep(const std::vector<GroupReport>& groups);

 private:
  Cache cache_;
  std::map<std::string, std::string> keys_;  // by kind
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_INPUT_CHOICES_H_
