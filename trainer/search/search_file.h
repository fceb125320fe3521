// SPDX-License-Identifier: Apache-2.0
// What a search keeps in the folder of --out:
//   search.json            flags ("configuration"), "rows", and SearchToJson
//   trials.csv search.html the same for spreadsheets and to look at
//   best/                  the best trial's model.safetensors and config.json,
//                          as `train --out` writes them
//   trial-N.safetensors    the best of those that ended, for --resume
// Each file is whole at any time.
#ifndef ONESTEP_TRAINER_SEARCH_SEARCH_FILE_H_
#define ONESTEP_TRAINER_SEARCH_SEARCH_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "trainer/config.h"
#include "trainer/search/search.h"
#include "trainer/search/search_outcome.h"

namespace onestep {

// What trials are trained and validated on.
struct SearchRows {
  std::string source;  // Dataset::source
  int64_t train = 0, validation = 0;
  double density = 0;  // of all of them (nonzeros.h)
};

class SearchFolder {
 public:
  // `config` as SearchConfigToJson wants it.
  SearchFolder(const Config& config, const SearchRows& rows);

  // Makes the folder, without anything of an earlier search.
  absl::Status Create() const;

  // What an earlier run of this search left: fills in what became of the
  // results, which have their trials, with groups, epochs and seconds, and the
  // best model that ended.
  // NotFound: there is none. InvalidArgument, with the flag: it was another
  // search. DataLoss: search.json is not whole, or the model another trial's.
  absl::Status Resume(SearchOutcome& outcome, KeptModels& models);

  // search.json, and models where they changed. FailedPrecondition.
  absl::Status Update(const SearchOutcome& outcome, const KeptModels& models);
  // That and the rest.
  absl::Status Finish(const SearchOutcome& outcome, const KeptModels& models);

 private:
  std::string Path(const std::string& name) const;
  // InvalidArgument where `was` has another value than `is` of what is not of
  // the run alone; `before` goes before the key.
  absl::Status CheckSame(const std::string& before,
                         const nlohmann::ordered_json& was,
                         const nlohmann::ordered_json& is) const;
  absl::Status ReadKept(const TrialResult& result, KeptModel& model) const;
  // Files of an earlier run: all, or those alone that it was just writing.
  absl::Status RemoveOld(bool drafts_alone) const;
  absl::Status WriteBest(const SearchOutcome& outcome, const KeptModel& model);
  absl::Status WriteWeights(const std::string& path, const TrialResult& result,
                            const KeptModel& model) const;

  const Config config_;
  const int64_t train_rows_;
  const double density_;
  const nlohmann::ordered_json configuration_, rows_;
  int64_t ended_ = -1;  // of the file
  int64_t best_ = -1;   // of the folder
  size_t best_epochs_ = 0;
};

// SearchToJson back into what became of outcome.results, which have their
// trials of `epochs` each, and its groups, epochs and seconds. DataLoss says
// where it is not theirs.
absl::Status ReadOutcome(const nlohmann::ordered_json& json, int64_t epochs,
                         SearchOutcome& outcome);

}  // namespace onestep

#endif  // ONESTEP_TRAINER_SEARCH_SEARCH_FILE_H_
