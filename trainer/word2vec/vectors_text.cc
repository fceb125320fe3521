// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/vectors_text.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/cpu/parallel.h"
#include "trainer/numbers.h"

namespace onestep {
namespace {

// Parts of the text for each thread, as some lines take longer than others.
constexpr int64_t kPartsPerThread = 4;
constexpr int64_t kMaxWords = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxHeaderNumber = int64_t{1} << 48;

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view TrimEnd(std::string_view text) {
  while (!text.empty() && (IsBlank(text.back()) || text.back() == '\n')) {
    text.remove_suffix(1);
  }
  return text;
}

std::string_view FirstLine(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

// The next number behind blanks; false when there is none up to a blank or the
// end.
bool TakeFloat(std::string_view& text, float* value) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  std::from_chars_result result = std::from_chars(text.data(), end, *value);
  if (result.ec == std::errc::result_out_of_range) {
    double wide = 0;
    result = std::from_chars(text.data(), end, wide);
    *value = static_cast<float>(wide);
  }
  if (result.ec != std::errc() ||
      (result.ptr != end && !IsBlank(*result.ptr))) {
    return false;
  }
  text.remove_prefix(result.ptr - text.data());
  return true;
}

// Of a line without blanks at its end.
std::string_view WordOf(std::string_view line) {
  return line.substr(0, line.find(' '));
}

// Takes the line's word and its row[dim]. Messages go behind "line 7: ".
absl::Status ParseLine(std::string_view line, int64_t dim,
                       std::string_view* word, float* row) {
  line = TrimEnd(line);
  *word = WordOf(line);
  std::string_view rest = line.substr(word->size());
  int64_t values = 0;
  float extra = 0;
  while (!rest.empty()) {
    if (!TakeFloat(rest, values < dim ? &row[values] : &extra)) {
      while (!rest.empty() && IsBlank(rest.front())) rest.remove_prefix(1);
      const std::string_view got = WordOf(rest);
      return absl::DataLossError(
          absl::StrCat("want a number, got ", Quote({got.data(), got.size()})));
    }
    ++values;
  }
  if (values == dim) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("want a word and ", dim, " values, got ", values));
}

// Whole lines of the text.
struct Part {
  std::string_view text;
  int64_t lines = 0;
  int64_t first = 0;  // row
  absl::Status status;
};

// Cuts the text behind newlines into parts of about equal size.
std::vector<Part> Cut(std::string_view text, int64_t count) {
  std::vector<Part> parts;
  const size_t target = text.size() / count + 1;
  while (!text.empty()) {
    const size_t end = text.find('\n', std::min(target, text.size()) - 1);
    parts.emplace_back().text =
        text.substr(0, end == text.npos ? end : end + 1);
    text.remove_prefix(parts.back().text.size());
  }
  return parts;
}

void ParsePart(Part& part, int64_t lines_before, int64_t dim,
               std::string_view* words, float* rows) {
  std::string_view rest = part.text;
  for (int64_t i = part.first; i < part.first + part.lines; ++i) {
    const std::string_view line = FirstLine(rest);
    const absl::Status status = ParseLine(line, dim, &words[i], rows + i * dim);
    if (!status.ok()) {
      part.status = absl::DataLossError(
          absl::StrCat("line ", lines_before + i + 1, ": ", status.message()));
      return;
    }
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
}

// Without a first line of its own the file has as many values as its first
// word; 0: none.
int64_t CountValues(std::string_view line) {
  std::string_view rest = TrimEnd(line);
  rest.remove_prefix(WordOf(rest).size());
  int64_t count = 0;
  for (float value; TakeFloat(rest, &value);) ++count;
  return rest.empty() ? count : 0;
}

}  // namespace

std::optional<VectorsHeader> ParseVectorsHeader(std::string_view text) {
  const std::string_view line = FirstLine(text);
  VectorsHeader header;
  header.bytes = std::min(line.size() + 1, text.size());
  const std::string_view size = WordOf(line);
  const std::string_view dim =
      TrimEnd(line.substr(std::min(size.size() + 1, line.size())));
  for (const auto& [word, value] :
       {std::pair(size, &header.size), std::pair(dim, &header.dim)}) {
    const auto parsed =
        ParseInteger({word.data(), word.size()}, 0, kMaxHeaderNumber);
    if (!parsed.ok()) return std::nullopt;
    *value = *parsed;
  }
  return header;
}

absl::StatusOr<Buffer> RowsOf(const VectorsHeader& header, size_t row_bytes,
                              size_t rest) {
  if (header.size < 1 || header.size > kMaxWords || header.dim < 1) {
    return absl::DataLossError(
        absl::StrCat("want 1 to ", kMaxWords, " words of 1 value or more, got ",
                     header.size, " words of ", header.dim));
  }
  if (static_cast<size_t>(header.size) > rest / row_bytes) {
    return absl::DataLossError(
        absl::StrCat("want ", header.size, " words of ", header.dim,
                     " values as line 1 says, got ", rest, " bytes behind it"));
  }
  return Buffer::Create(header.size * header.dim * sizeof(float));
}

void TakeWords(const std::vector<std::string_view>& words,
               WordVectors& vectors) {
  float* const rows = vectors.rows.as<float>();
  for (size_t i = 0; i < words.size(); ++i) {
    const int64_t kept = vectors.size();
    if (!vectors.words.Add(words[i])) {
      ++vectors.repeated;
      continue;
    }
    if (vectors.repeated == 0) continue;
    std::copy_n(rows + i * vectors.dim, vectors.dim, rows + kept * vectors.dim);
    if (!vectors.counts.empty()) vectors.counts[kept] = vectors.counts[i];
  }
  if (!vectors.counts.empty()) vectors.counts.resize(vectors.size());
}

void FormatRows(const VectorsView& vectors, int64_t begin, int64_t end,
                std::string& text) {
  char value[32];
  for (int64_t i = begin; i < end; ++i) {
    text += vectors.word(i);
    const float* const row = vectors.row(i);
    for (int64_t j = 0; j < vectors.dim; ++j) {
      value[0] = ' ';
      const auto result = std::to_chars(value + 1, std::end(value), row[j]);
      text.append(value, result.ptr);
    }
    text += '\n';
  }
}

absl::StatusOr<WordVectors> ParseVectorsText(std::string_view text,
                                             int threads) {
  const std::optional<VectorsHeader> header = ParseVectorsHeader(text);
  const std::string_view body =
      TrimEnd(text.substr(header ? header->bytes : 0));
  std::vector<Part> parts = Cut(body, threads * kPartsPerThread);
  const int64_t num_parts = std::ssize(parts);
  ParallelFor(threads, num_parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const std::string_view part = parts[p].text;
      parts[p].lines = std::count(part.begin(), part.end(), '\n') +
                       (part.back() == '\n' ? 0 : 1);
    }
  });
  VectorsHeader found;
  for (Part& part : parts) {
    part.first = found.size;
    found.size += part.lines;
  }
  found.dim = header ? header->dim : CountValues(FirstLine(body));
  if (!header && found.dim == 0) {
    const std::string_view line = FirstLine(text);
    return absl::DataLossError(absl::StrCat(
        "line 1: want the numbers of words and of values, or a word and its "
        "values, got ",
        Quote({line.data(), line.size()})));
  }
  if (header && header->size != found.size) {
    return absl::DataLossError(absl::StrCat(
        "want ", header->size, " words of ", header->dim,
        " values as line 1 says, got ", found.size, " lines behind it"));
  }
  WordVectors vectors;
  vectors.dim = found.dim;
  ASSIGN_OR_RETURN(vectors.rows, RowsOf(found, 2 * found.dim, body.size()));
  std::vector<std::string_view> words(found.size);
  ParallelFor(threads, num_parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      ParsePart(parts[p], header ? 1 : 0, found.dim, words.data(),
                vectors.rows.as<float>());
    }
  });
  for (const Part& part : parts) RETURN_IF_ERROR(part.status);
  TakeWords(words, vectors);
  return vectors;
}

}  // namespace onestep
