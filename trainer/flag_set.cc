// SPDX-License-Identifier: Apache-2.0
#include "trainer/flag_set.h"

#include <algorithm>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "trainer/version.h"

namespace onestep {
namespace {

absl::Status WantFlags(const char* verb, const std::string& got) {
  return absl::InvalidArgumentError(
      absl::StrCat("want flags after ", verb, ", got ", Quote(got)));
}

}  // namespace

FlagSet::FlagSet(const std::string& name, const std::string& usage,
                 const std::string& footer)
    : app_(std::make_unique<CLI::App>()) {
  app_->name(name);
  app_->description(usage);
  app_->allow_extras();
  app_->set_version_flag("--version", VersionText, "Show versions and exit");
  app_->footer(footer);
}

FlagSet::~FlagSet() = default;

void FlagSet::Value(const std::string& flag, const std::string& type,
                    const std::string& help, const Set& set) {
  app_->add_option_function<std::string>(
          flag,
          [this, flag, set](const std::string& text) {
            const absl::Status status = set(text);
            if (status.ok()) return;
            refused_.Update(absl::InvalidArgumentError(
                absl::StrCat(flag, ": ", status.message())));
          },
          help)
      ->type_name(type)
      ->group(group_)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void FlagSet::Text(const std::string& flag, const std::string& type,
                   std::string* value, const std::string& help) {
  Value(flag, type, help, [value, type](const std::string& text) {
    *value = text;
    if (!text.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("want ", type, ", got ''"));
  });
}

void FlagSet::Integer(const std::string& flag, int64_t* value, int64_t low,
                      int64_t high, const std::string& help) {
  Value(flag, "N", absl::StrCat(help, " [", *value, "]"),
        [value, low, high](const std::string& text) -> absl::Status {
          ASSIGN_OR_RETURN(*value, ParseInteger(text, low, high));
          return absl::OkStatus();
        });
}

void FlagSet::Integers(const std::string& flag, std::vector<int64_t>* values,
                       int64_t low, int64_t high, const std::string& help) {
  Value(flag, "A,B", absl::StrCat(help, " [", absl::StrJoin(*values, ","), "]"),
        [values, low, high](const std::string& text) -> absl::Status {
          values->clear();
          for (const absl::string_view word : absl::StrSplit(text, ',')) {
            ASSIGN_OR_RETURN(const int64_t value,
                             ParseInteger(word, low, high));
            RETURN_IF_ERROR(AppendOnce(value, word, values));
          }
          return absl::OkStatus();
        });
}

void FlagSet::Switch(const std::string& flag, bool* value,
                     const std::string& help) {
  app_->add_flag(flag, *value, help)->group(group_);
}

void FlagSet::Positional(std::vector<std::string>* words,
                         const std::string& type, const std::string& help) {
  words_ = words;
  app_->add_option("files", *words, help)->type_name(type);
}

bool FlagSet::Given(const std::string& flag) const {
  const CLI::Option* option = app_->get_option_no_throw(flag);
  return option != nullptr && option->count() > 0;
}

std::optional<bool> FlagSet::TakesValue(const std::string& flag) const {
  const CLI::Option* option = app_->get_option_no_throw(flag);
  if (option == nullptr) return std::nullopt;
  return option->get_items_expected_min() > 0;
}

absl::StatusOr<std::string> FlagSet::Parse(std::vector<std::string> args,
                                           const char* verb) {
  // Not by CLI11, to which the separator is a word.
  const auto separator = std::find(args.begin(), args.end(), "--");
  std::vector<std::string> words;
  if (separator != args.end()) words.assign(separator + 1, args.end());
  args.erase(separator, args.end());
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
  try {
    app_->parse(args);
  } catch (const CLI::CallForHelp&) {
    return app_->help();
  } catch (const CLI::CallForVersion& version) {
    return absl::StrCat(version.what(), "\n");
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(error.what());
  }
  RETURN_IF_ERROR(CheckExtras(verb));
  RETURN_IF_ERROR(refused_);
  if (words.empty()) return "";
  if (words_ == nullptr) return WantFlags(verb, words.front());
  words_->insert(words_->end(), words.begin(), words.end());
  return "";
}

absl::Status FlagSet::CheckExtras(const char* verb) const {
  const std::vector<std::string> extras = app_->remaining();
  if (extras.empty()) return absl::OkStatus();
  const std::string& extra = extras.front();
  if (!absl::StartsWith(extra, "-")) {
    return WantFlags(verb, extra);
  }
  std::vector<std::string> known;
  for (const CLI::Option* option : app_->get_options()) {
    for (const std::string& name : option->get_lnames()) {
      known.push_back("--" + name);
    }
  }
  const std::string flag = extra.substr(0, extra.find('='));
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown flag ", Quote(flag), " of ", verb, "; the nearest is ",
      NearestOf(flag, known), words_ == nullptr ? "" : "; words go behind --"));
}

}  // namespace onestep
