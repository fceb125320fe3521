// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/dataset.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/huge_pages.h"
#include "runtime/base/status.h"
#include "trainer/data/idx.h"

namespace onestep {
namespace {

namespace fs = std::filesystem;

// The path of images ("images", 3) or labels ("labels", 1) of a subset.
absl::StatusOr<std::string> FindFile(const std::string& dir, Subset subset,
                                     const char* kind, int rank) {
  std::vector<std::string> prefixes = {"train"};
  if (subset == Subset::kTest) prefixes = {"t10k", "test"};
  std::vector<std::string> names;
  for (const std::string& prefix : prefixes) {
    for (const char* separator : {"-", "."}) {
      names.push_back(
          absl::StrCat(prefix, "-", kind, separator, "idx", rank, "-ubyte"));
    }
  }
  for (const std::string& name : names) {
    for (const char* suffix : {"", ".gz"}) {
      std::string path = (fs::path(dir) / (name + suffix)).string();
      std::error_code ignored;
      if (fs::exists(path, ignored)) return path;
    }
  }
  return absl::NotFoundError(absl::StrCat(dir, ": want ",
                                          absl::StrJoin(names, " or "),
                                          " (plain or .gz), got none"));
}

absl::StatusOr<std::string> GivenDirectory(const std::string& origin,
                                           std::string dir) {
  std::error_code ignored;
  if (fs::is_directory(dir, ignored)) return dir;
  return absl::NotFoundError(
      absl::StrCat(origin, ": want a directory, got '", dir, "', which is ",
                   fs::exists(dir, ignored) ? "not one" : "missing"));
}

}  // namespace

absl::StatusOr<Dataset> LoadIdxDirectory(const std::string& dir, Subset subset,
                                         int classes) {
  ASSIGN_OR_RETURN(const std::string images_path,
                   FindFile(dir, subset, "images", 3));
  ASSIGN_OR_RETURN(const std::string labels_path,
                   FindFile(dir, subset, "labels", 1));
  ASSIGN_OR_RETURN(IdxImages images, ReadIdxImages(images_path));
  ASSIGN_OR_RETURN(const std::vector<uint8_t> labels,
                   ReadIdxLabels(labels_path));
  const int64_t label_count = labels.size();
  if (label_count != images.count) {
    return absl::DataLossError(absl::StrCat(
        labels_path, ": want ", images.count, " labels, one for each image of ",
        images_path, ", got ", label_count));
  }
  for (int64_t row = 0; row < label_count; ++row) {
    if (labels[row] >= classes) {
      return absl::DataLossError(
          absl::StrCat(labels_path, ": row ", row, ": want a label in 0..",
                       classes - 1, ", got ", static_cast<int>(labels[row])));
    }
  }

  Dataset data;
  data.images = std::move(images.pixels);
  PreferHugePages(data.images.data(), std::ssize(data.images));
  data.labels.assign(labels.begin(), labels.end());
  data.rows = images.count;
  data.features = images.rows * images.cols;
  data.image_rows = images.rows;
  data.image_cols = images.cols;
  data.classes = classes;
  data.source = images_path;
  return data;
}

absl::StatusOr<std::string> ResolveDataDirectory(const std::string& flag) {
  if (!flag.empty()) return GivenDirectory("--data", flag);
  const char* variable = std::getenv("ONESTEP_DATA");
  if (variable != nullptr && *variable != '\0') {
    return GivenDirectory("$ONESTEP_DATA", variable);
  }
  for (const char* dir : {"data", kFashionMnistDirectory}) {
    if (FindFile(dir, Subset::kTrain, "images", 3).ok()) return dir;
  }
  return "";
}

}  // namespace onestep
