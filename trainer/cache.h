// SPDX-License-Identifier: Apache-2.0
// JSON files that a run keeps for the next one: in $ONESTEP_CACHE, else
// $XDG_CACHE_HOME/onestep, else ~/.cache/onestep. One that cannot be read or
// written is said on stderr and does without.
#ifndef ONESTEP_TRAINER_CACHE_H_
#define ONESTEP_TRAINER_CACHE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace onestep {

// The path of the file `name`; "": there is no place for it.
std::string CacheFile(const std::string& name);

class Cache {
 public:
  // `what` is kept in the file `name`, for people: "the choice of auto".
  Cache(const std::string& name, absl::string_view what);

  // CacheFile(name).
  const std::string& file() const { return file_; }
  // What is kept under `key`; null: nothing.
  nlohmann::ordered_json Get(const std::string& key) const;
  // Of everything that is kept, in the order in which it first came.
  std::vector<std::string> Keys() const;
  // Beside what is kept there by now. Of two runs that do so at the same
  // moment, one's value is lost.
  void Put(const std::string& key, nlohmann::ordered_json value);

 private:
  std::string file_;
  std::string what_;
  nlohmann::ordered_json json_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_CACHE_H_
