// SPDX-License-Identifier: Apache-2.0
#include "trainer/output_dir.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "trainer/atomic_file.h"
#include "trainer/file_kind.h"
#include "trainer/model_file.h"
#include "trainer/word2vec/vectors_file.h"

namespace onestep {
namespace {

namespace fs = std::filesystem;

absl::Status CannotWrite(const std::string& path, const std::string& reason) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write ", path, ": ", reason));
}

}  // namespace

bool IsOfARun(const std::string& name) {
  const std::string file = name.substr(0, name.find(".tmp."));
  constexpr const char* kFiles[] = {
      kLastModelFile,   kBestModelFile,     kVectorsFile,
      kVectorsTextFile, kVectorsTensorFile, kVocabularyFile,
      "config.json",    "graph.txt",        "log.jsonl"};
  return std::find(std::begin(kFiles), std::end(kFiles), file) !=
         std::end(kFiles);
}

absl::Status CheckOutputDir(const std::string& dir, bool force) {
  std::error_code error;
  if (!fs::exists(dir, error)) return absl::OkStatus();
  if (!fs::is_directory(dir, error)) {
    return CannotWrite(dir, "it is not a folder");
  }
  const bool empty = fs::is_empty(dir, error);
  if (error) return CannotWrite(dir, error.message());
  if (empty || force) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("--out: want a new or empty folder, got ", dir,
                   ", which has files; --force overwrites them"));
}

absl::Status MakeFolder(const std::string& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  return error ? CannotWrite(dir, error.message()) : absl::OkStatus();
}

absl::Status CreateOutputDir(const std::string& dir) {
  RETURN_IF_ERROR(MakeFolder(dir));
  std::vector<fs::path> old;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(dir, error)) {
    if (IsOfARun(file.path().filename().string())) old.push_back(file.path());
  }
  if (error) return CannotWrite(dir, error.message());
  for (const fs::path& file : old) {
    fs::remove(file, error);
    if (error) return CannotWrite(file.string(), error.message());
  }
  return absl::OkStatus();
}

absl::Status CreateDumpDir(const std::string& dir) {
  if (dir.empty()) return absl::OkStatus();
  std::error_code error;
  fs::create_directories(dir, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--dump-ir: cannot write ", dir, ": ", error.message()));
}

absl::Status WriteTextFile(const std::string& path, absl::string_view text) {
  ASSIGN_OR_RETURN(LineLog file, LineLog::Create(path));
  return file.Append(text);
}

absl::Status ReplaceTextFile(const std::string& path, absl::string_view text) {
  AtomicFile file(path);
  file.Write(text.data(), text.size());
  file.Write("\n");
  return file.Commit();
}

absl::Status CheckCanWrite(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const std::string other = NoRegularFile(path);
  if (!other.empty()) return CannotWrite(path, other);
  std::error_code error;
  const bool is_there = std::filesystem::exists(path, error);
  std::FILE* const file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) return CannotWrite(path, std::strerror(errno));
  std::fclose(file);
  if (!is_there) std::filesystem::remove(path, error);
  return absl::OkStatus();
}

absl::StatusOr<LineLog> LineLog::Create(const std::string& path) {
  const std::string other = NoRegularFile(path);
  if (!other.empty()) return CannotWrite(path, other);
  LineLog log;
  log.path_ = path;
  log.file_.reset(std::fopen(path.c_str(), "we"));
  if (log.file_ == nullptr) return CannotWrite(path, std::strerror(errno));
  return log;
}

absl::Status LineLog::Append(absl::string_view line) {
  std::FILE* const file = file_.get();
  if (std::fwrite(line.data(), 1, line.size(), file) != line.size() ||
      std::fputc('\n', file) == EOF || std::fflush(file) != 0) {
    return CannotWrite(path_, std::strerror(errno));
  }
  return absl::OkStatus();
}

}  // namespace onestep
