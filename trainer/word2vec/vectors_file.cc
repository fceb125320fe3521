// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/vectors_file.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "runtime/cpu/parallel.h"
#include "trainer/atomic_file.h"
#include "trainer/checkpoint.h"
#include "trainer/finite.h"
#include "trainer/numbers.h"
#include "trainer/word2vec/mapping.h"
#include "trainer/word2vec/plain_text.h"
#include "trainer/word2vec/vectors_text.h"

static_assert(std::endian::native == std::endian::little,
              "floats are written to the file as they lie in memory");

namespace onestep {
namespace {

constexpr char kTensor[] = "vectors";
constexpr int64_t kRowsOfText = 512;  // for a thread at a time
constexpr int64_t kRowsToCopy = 1024;

std::string Show(std::string_view text) {
  return Quote({text.data(), text.size()});
}

// --- Writing ---------------------------------------------------------------

absl::Status CheckWords(const std::string& path, const VectorsView& vectors) {
  for (int64_t i = 0; i < vectors.size; ++i) {
    const std::string_view word = vectors.word(i);
    if (word.find_first_of(" \n") != word.npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": want words without space and newline, got ", Show(word)));
    }
  }
  return absl::OkStatus();
}

std::string FirstLine(const VectorsView& vectors) {
  return absl::StrCat(vectors.size, " ", vectors.dim, "\n");
}

// --- Reading; messages go behind "<path>: " --------------------------------

// Words and values of a binary file, where they lie.
struct BinaryRows {
  std::vector<std::string_view> words;
  std::vector<const char*> values;
};

absl::StatusOr<BinaryRows> FindBinaryRows(const VectorsHeader& header,
                                          std::string_view rest) {
  BinaryRows rows;
  const size_t bytes = header.dim * sizeof(float);
  for (int64_t i = 0; i < header.size; ++i) {
    if (!rest.empty() && rest.front() == '\n') rest.remove_prefix(1);
    const size_t space = rest.find(' ');
    if (space == rest.npos || rest.size() - space - 1 < bytes) {
      return absl::DataLossError(absl::StrCat(
          "row ", i + 1, " of ", header.size, ": want a word, a space and ",
          bytes, " bytes, got the end of the file"));
    }
    rows.words.push_back(rest.substr(0, space));
    rows.values.push_back(rest.data() + space + 1);
    rest.remove_prefix(space + 1 + bytes);
  }
  if (rest.empty() || rest == "\n") return rows;
  return absl::DataLossError(absl::StrCat("want the end of the file behind ",
                                          header.size, " rows, got ",
                                          rest.size(), " bytes more"));
}

// Whether the first row may be one of text: the two bytes at least that each
// of its values then has are all printable.
bool LooksLikeText(const VectorsHeader& header, std::string_view rest) {
  const size_t space = std::min(rest.find(' '), rest.size());
  const std::string_view values =
      rest.substr(space, std::min<int64_t>(64, 2 * header.dim));
  return std::all_of(values.begin(), values.end(), [](unsigned char c) {
    return (c >= ' ' && c < 0x7f) || (c >= '\t' && c <= '\r');
  });
}

absl::StatusOr<WordVectors> CopyBinaryRows(const VectorsHeader& header,
                                           const BinaryRows& found,
                                           size_t rest_bytes, int threads) {
  WordVectors vectors;
  vectors.dim = header.dim;
  const size_t bytes = header.dim * sizeof(float);
  ASSIGN_OR_RETURN(vectors.rows, RowsOf(header, 1 + bytes, rest_bytes));
  ParallelFor(threads, header.size, kRowsToCopy,
              [&](int64_t begin, int64_t end) {
                float* const rows = vectors.rows.as<float>();
                for (int64_t i = begin; i < end; ++i) {
                  std::memcpy(rows + i * header.dim, found.values[i], bytes);
                }
              });
  TakeWords(found.words, vectors);
  return vectors;
}

bool IsSafetensors(std::string_view text) {
  uint64_t length = 0;
  if (text.size() <= sizeof(length)) return false;
  std::memcpy(&length, text.data(), sizeof(length));
  return length <= text.size() - sizeof(length) && text[sizeof(length)] == '{';
}

// The words of a vocabulary file, which must be `size`, and their counts.
absl::Status ParseVocabulary(std::string_view text, int64_t size,
                             std::vector<std::string_view>* words,
                             std::vector<int64_t>* counts) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const size_t space = line.rfind(' ');
    const std::string_view number =
        space == line.npos ? std::string_view() : line.substr(space + 1);
    const absl::StatusOr<int64_t> count =
        ParseInteger({number.data(), number.size()}, 0, INT64_MAX);
    if (!count.ok()) {
      return absl::DataLossError(absl::StrCat("line ", words->size() + 1,
                                              ": want \"word count\", got ",
                                              Show(line)));
    }
    words->push_back(line.substr(0, space));
    counts->push_back(*count);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  if (std::ssize(*words) == size) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("want the words of ", size,
                                          " vectors, a line each, got ",
                                          words->size()));
}

absl::StatusOr<WordVectors> ReadSafetensors(const std::string& path) {
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, ReadCheckpoint(path));
  const NamedTensor* tensor = nullptr;
  for (const NamedTensor& t : checkpoint.tensors) {
    if (t.name == kTensor && t.dims.size() == 2) tensor = &t;
  }
  if (tensor == nullptr) {
    return absl::DataLossError(
        absl::StrCat(path, ": want a tensor ", kTensor, " f32[V,d], got none"));
  }
  const VectorsHeader header{tensor->dims[0], tensor->dims[1]};
  const size_t bytes = tensor->values.size() * sizeof(float);
  WordVectors vectors;
  vectors.dim = header.dim;
  absl::StatusOr<Buffer> rows =
      RowsOf(header, header.dim * sizeof(float), bytes);
  const std::string beside = VocabularyPath(path);
  ASSIGN_OR_RETURN(const Mapping vocabulary, Mapping::OfFile(beside));
  std::vector<std::string_view> words;
  const absl::Status status =
      ParseVocabulary(vocabulary.text(), header.size, &words, &vectors.counts);
  if (!rows.ok() || !status.ok()) {
    const absl::Status& why = rows.ok() ? status : rows.status();
    return absl::Status(why.code(), absl::StrCat(rows.ok() ? beside : path,
                                                 ": ", why.message()));
  }
  vectors.rows = *std::move(rows);
  std::memcpy(vectors.rows.data(), tensor->values.data(), bytes);
  TakeWords(words, vectors);
  return vectors;
}

absl::StatusOr<WordVectors> ParseTextOrBinary(std::string_view text,
                                              int threads) {
  const std::optional<VectorsHeader> header = ParseVectorsHeader(text);
  if (!header) return ParseVectorsText(text, threads);
  const std::string_view rest = text.substr(header->bytes);
  const absl::StatusOr<BinaryRows> rows = FindBinaryRows(*header, rest);
  if (LooksLikeText(*header, rest)) {
    // Short decimals take four bytes as well: what is right as text is text.
    absl::StatusOr<WordVectors> parsed = ParseVectorsText(text, threads);
    if (parsed.ok() || !rows.ok()) return parsed;
  }
  RETURN_IF_ERROR(rows.status());
  return CopyBinaryRows(*header, *rows, rest.size(), threads);
}

// `path`, or in such a folder the one file of vectors.
absl::StatusOr<std::string> FileOf(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  std::vector<std::string> found;
  for (const char* name :
       {kVectorsFile, kVectorsTextFile, kVectorsTensorFile}) {
    const std::filesystem::path file = std::filesystem::path(path) / name;
    if (std::filesystem::exists(file, ignored)) found.push_back(file.string());
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(path, ": want ", kVectorsFile, ", ",
                                            kVectorsTextFile, " or ",
                                            kVectorsTensorFile, ", got none"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": want one file of vectors, got ", absl::StrJoin(found, " and ")));
}

}  // namespace

absl::Status WriteVectorsBinary(const std::string& path,
                                const VectorsView& vectors) {
  RETURN_IF_ERROR(CheckWords(path, vectors));
  AtomicFile file(path);
  file.Write(FirstLine(vectors));
  for (int64_t i = 0; i < vectors.size; ++i) {
    file.Write(vectors.word(i));
    file.Write(" ");
    file.Write(vectors.row(i), vectors.dim * sizeof(float));
    file.Write("\n");
  }
  return file.Commit();
}

absl::Status WriteVectorsText(const std::string& path,
                              const VectorsView& vectors, int threads) {
  RETURN_IF_ERROR(CheckWords(path, vectors));
  AtomicFile file(path);
  file.Write(FirstLine(vectors));
  std::vector<std::string> texts(threads);
  const int64_t block = kRowsOfText * threads;
  for (int64_t first = 0; first < vectors.size; first += block) {
    ParallelFor(threads, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t row = first + t * kRowsOfText;
        texts[t].clear();
        FormatRows(vectors, std::min(row, vectors.size),
                   std::min(row + kRowsOfText, vectors.size), texts[t]);
      }
    });
    for (const std::string& text : texts) file.Write(text);
  }
  return file.Commit();
}

absl::Status WriteVectorsSafetensors(const std::string& path,
                                     const VectorsView& vectors) {
  const int64_t row_bytes = vectors.dim * sizeof(float);
  const nlohmann::ordered_json tensor = {
      {"dtype", "F32"},
      {"shape", {vectors.size, vectors.dim}},
      {"data_offsets", {0, vectors.size * row_bytes}}};
  std::string header = nlohmann::ordered_json{{kTensor, tensor}}.dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  AtomicFile file(path);
  file.Write(&length, sizeof(length));
  file.Write(header);
  for (int64_t i = 0; i < vectors.size; ++i) {
    file.Write(vectors.row(i), row_bytes);
  }
  return file.Commit();
}

absl::Status WriteVocabulary(const std::string& path,
                             const VectorsView& vectors) {
  RETURN_IF_ERROR(CheckWords(path, vectors));
  AtomicFile file(path);
  for (int64_t i = 0; i < vectors.size; ++i) {
    file.Write(vectors.word(i));
    file.Write(absl::StrCat(" ", vectors.count ? vectors.count(i) : 0, "\n"));
  }
  return file.Commit();
}

std::string VocabularyPath(const std::string& path) {
  return std::filesystem::path(path).replace_extension(".vocab").string();
}

absl::StatusOr<WordVectors> ReadVectors(const std::string& path, int threads) {
  ASSIGN_OR_RETURN(const std::string name, FileOf(path));
  ASSIGN_OR_RETURN(const Mapping file, Mapping::OfFile(name));
  const bool ours = IsSafetensors(file.text());
  if (!ours) RETURN_IF_ERROR(CheckUnpacked(name, file.text()));
  absl::StatusOr<WordVectors> vectors =
      ours ? ReadSafetensors(name)
           : ParseTextOrBinary(SkipByteOrderMark(file.text()), threads);
  if (!vectors.ok() && !ours) {
    return absl::Status(vectors.status().code(),
                        absl::StrCat(name, ": ", vectors.status().message()));
  }
  if (!vectors.ok()) return vectors;
  vectors->path = name;
  for (int64_t i = 0; i < vectors->size(); ++i) {
    if (AllFinite(vectors->row(i), vectors->dim)) continue;
    return absl::DataLossError(
        absl::StrCat(name, ": want finite values, got others for ",
                     Show(vectors->words[i])));
  }
  return vectors;
}

}  // namespace onestep
