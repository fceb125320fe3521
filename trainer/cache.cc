// SPDX-License-Identifier: Apache-2.0
#include "trainer/cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "trainer/console.h"
#include "trainer/json_text.h"
#include "trainer/output_dir.h"

namespace onestep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path Folder() {
  const auto env = [](const char* name) -> fs::path {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  fs::path folder = env("ONESTEP_CACHE");
  if (folder.empty() && !env("XDG_CACHE_HOME").empty()) {
    folder = env("XDG_CACHE_HOME") / "onestep";
  }
  if (folder.empty() && !env("HOME").empty()) {
    folder = env("HOME") / ".cache" / "onestep";
  }
  return folder;
}

// Keys have the machine's description in them, in which earlier versions wrote
// Highway's name for AVX-512.
Json WithCurrentIsaNames(Json json) {
  Json renamed = Json::object();
  for (auto& [key, value] : json.items()) {
    renamed[absl::StrReplaceAll(
        key, {{R"("isa":"avx3")", R"("isa":"AVX-512")"}})] = std::move(value);
  }
  return renamed;
}

// nullopt: there is something else than an object.
std::optional<Json> Read(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return Json::object();
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  std::ifstream in(file);
  Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  return WithCurrentIsaNames(std::move(json));
}

}  // namespace

std::string CacheFile(const std::string& name) {
  const fs::path folder = Folder();
  return folder.empty() ? "" : (folder / name).string();
}

Cache::Cache(const std::string& name, absl::string_view what)
    : file_(CacheFile(name)), what_(what), json_(Json::object()) {
  if (file_.empty()) {
    Console::Notice(absl::StrCat(
        what, " is not kept: want ONESTEP_CACHE, XDG_CACHE_HOME or HOME set"));
    return;
  }
  if (std::optional<Json> json = Read(file_)) {
    json_ = *std::move(json);
  } else {
    Console::Notice(absl::StrCat(file_, ": want a file with a JSON object"));
  }
}

Json Cache::Get(const std::string& key) const {
  return json_.contains(key) ? json_[key] : Json();
}

std::vector<std::string> Cache::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json_.items()) keys.push_back(key);
  return keys;
}

void Cache::Put(const std::string& key, Json value) {
  if (file_.empty()) return;
  // Other runs may have kept theirs meanwhile.
  if (std::optional<Json> json = Read(file_)) json_ = *std::move(json);
  json_[key] = std::move(value);
  std::error_code error;
  fs::create_directories(fs::path(file_).parent_path(), error);
  const absl::Status status = ReplaceTextFile(file_, JsonText(json_, 1));
  if (!status.ok()) {
    Console::Notice(absl::StrCat(what_, " is not kept: ", status.message()));
  }
}

}  // namespace onestep
