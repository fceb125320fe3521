// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_FLAG_SET_H_
#define ONESTEP_TRAINER_FLAG_SET_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "runtime/base/nearest.h"
#include "runtime/base/status.h"
#include "trainer/config.h"
#include "trainer/numbers.h"

namespace CLI {
class App;
}

namespace onestep {

// All but those that a verb does not take.
template <typename E>
std::vector<std::string> Words(std::optional<E> without = std::nullopt) {
  std::vector<std::string> words;
  for (const Named<E>& named : Names<E>()) {
    if (named.value != without) words.push_back(named.name);
  }
  return words;
}

// "want cpu|gpu, got 'tpu'; the nearest is 'cpu'".
template <typename E>
absl::StatusOr<E> ParseChoiceBut(std::optional<E> without,
                                 const std::string& text) {
  for (const Named<E>& named : Names<E>()) {
    if (text == named.name && named.value != without) return named.value;
  }
  const std::vector<std::string> words = Words<E>(without);
  return absl::InvalidArgumentError(
      absl::StrCat("want ", absl::StrJoin(words, "|"), ", got ", Quote(text),
                   "; the nearest is ", NearestOf(text, words)));
}
template <typename E>
absl::StatusOr<E> ParseChoice(const std::string& text) {
  return ParseChoiceBut<E>(std::nullopt, text);
}

// Appends a value of a list. InvalidArgument: it is there already.
template <typename T>
absl::Status AppendOnce(T value, absl::string_view text,
                        std::vector<T>* values) {
  if (std::find(values->begin(), values->end(), value) != values->end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("want each value once, got ", Quote(text), " again"));
  }
  values->push_back(value);
  return absl::OkStatus();
}

// Flags with what their values mean: CLI11 takes the arguments apart and writes
// the help, the setters here decide about values. A flag given twice takes the
// last value.
class FlagSet {
 public:
  using Set = std::function<absl::Status(const std::string&)>;

  // `name` as in "trainer bench".
  FlagSet(const std::string& name, const std::string& usage,
          const std::string& footer);
  FlagSet(const FlagSet&) = delete;
  FlagSet& operator=(const FlagSet&) = delete;
  ~FlagSet();

  // ---- defining; flags that follow are listed under `group` ----
  void Group(std::string group) { group_ = std::move(group); }
  void Value(const std::string& flag, const std::string& type,
             const std::string& help, const Set& set);
  void Text(const std::string& flag, const std::string& type,
            std::string* value, const std::string& help);
  void Integer(const std::string& flag, int64_t* value, int64_t low,
               int64_t high, const std::string& help);
  // Integers, by commas, each once.
  void Integers(const std::string& flag, std::vector<int64_t>* values,
                int64_t low, int64_t high, const std::string& help);
  template <typename T>
  void Number(const std::string& flag, T* value, double low, double high,
              const std::string& help) {
    Value(flag, "X", absl::StrCat(help, " [", *value, "]"),
          [value, low, high](const std::string& text) -> absl::Status {
            ASSIGN_OR_RETURN(*value, ParseNumber(text, low, high));
            return absl::OkStatus();
          });
  }
  // Any of 64 bits. `help` says the default.
  template <typename T>
  void Unsigned(const std::string& flag, T* value, const std::string& help) {
    Value(flag, "N", help, [value](const std::string& text) -> absl::Status {
      ASSIGN_OR_RETURN(*value, ParseUnsigned(text));
      return absl::OkStatus();
    });
  }
  template <typename E>
  void Choice(const std::string& flag, E* value, const std::string& help,
              std::optional<E> without = std::nullopt) {
    Value(flag, absl::StrJoin(Words<E>(without), "|"),
          absl::StrCat(help, " [", NameOf(*value), "]"),
          [value, without](const std::string& text) -> absl::Status {
            ASSIGN_OR_RETURN(*value, ParseChoiceBut<E>(without, text));
            return absl::OkStatus();
          });
  }
  // Choices, by commas, each once.
  template <typename E>
  void Choices(const std::string& flag, std::vector<E>* values,
               const std::string& help,
               std::optional<E> without = std::nullopt) {
    Value(flag, "A,B",
          absl::StrCat(help, ", of ", absl::StrJoin(Words<E>(without), ", ")),
          [values, without](const std::string& text) -> absl::Status {
            values->clear();
            for (const auto word : absl::StrSplit(text, ',')) {
              ASSIGN_OR_RETURN(const E value,
                               ParseChoiceBut<E>(without, std::string(word)));
              RETURN_IF_ERROR(AppendOnce(value, word, values));
            }
            return absl::OkStatus();
          });
  }
  void Switch(const std::string& flag, bool* value, const std::string& help);
  // Words that are no flags, and all behind "--".
  void Positional(std::vector<std::string>* words, const std::string& type,
                  const std::string& help);

  // ---- parsing ----
  // Text to print instead of doing anything, of --help or --version; else "".
  // InvalidArgument: of the first flag that is unknown or refused, with the
  // nearest one and `verb` in the message.
  absl::StatusOr<std::string> Parse(std::vector<std::string> args,
                                    const char* verb);
  bool Given(const std::string& flag) const;
  // Whether a value follows `flag`; nullopt: there is no such flag.
  std::optional<bool> TakesValue(const std::string& flag) const;

 private:
  absl::Status CheckExtras(const char* verb) const;

  absl::Status refused_;  // the first value that was
  std::string group_;
  std::vector<std::string>* words_ = nullptr;  // none: the verb takes none
  std::unique_ptr<CLI::App> app_;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_FLAG_SET_H_
