// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "trainer/atomic_file.h"
#include "trainer/json_text.h"

static_assert(std::endian::native == std::endian::little,
              "values are written to the file as they lie in memory");

namespace onestep {
namespace {

using Json = nlohmann::json;  // whose objects are sorted by key

constexpr char kMetadata[] = "__metadata__";

// The product of dims; nothing when one is negative or it overflows.
std::optional<int64_t> NumElements(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(product, dim, &product)) return {};
  }
  return product;
}

// --- Writing ---------------------------------------------------------------

std::string MakeHeader(const Checkpoint& checkpoint) {
  Json header = Json::object();
  if (!checkpoint.metadata.empty()) header[kMetadata] = checkpoint.metadata;
  int64_t offset = 0;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    const int64_t count = tensor.values.size();
    const int64_t end = offset + count * sizeof(float);
    CHECK(NumElements(tensor.dims) == count);
    CHECK(tensor.name != kMetadata && !header.contains(tensor.name));
    header[tensor.name] = {{"dtype", "F32"},
                           {"shape", tensor.dims},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = JsonText(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string prefix(sizeof(length), '\0');
  std::memcpy(prefix.data(), &length, sizeof(length));
  return prefix + text;
}

// --- Reading ---------------------------------------------------------------

// A value of the header in a message: in one line and not too long.
std::string Show(const Json& value) {
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

// Appends a list of integers in [0, 2^63) to `out`; false for anything else.
bool ParseSizes(const Json& list, std::vector<int64_t>* out) {
  if (!list.is_array()) return false;
  for (const Json& item : list) {
    constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
    if (!item.is_number_unsigned() || item.get<uint64_t>() > kMax) return false;
    out->push_back(item.get<int64_t>());
  }
  return true;
}

// A tensor of the header and where its values lie behind the header.
struct Entry {
  NamedTensor tensor;
  int64_t begin = 0;
  int64_t end = 0;
};

// Messages from here on go behind "<path>: ".
absl::Status Corrupt(const std::string& what) {
  return absl::DataLossError(what);
}

absl::StatusOr<Entry> ParseEntry(const std::string& name, const Json& json) {
  const std::string who = absl::StrCat("tensor ", Show(name), ": ");
  if (!json.is_object()) {
    return Corrupt(absl::StrCat(who, "want an object, got ", Show(json)));
  }
  const auto field = [&json](const char* key) {
    const auto found = json.find(key);
    return found == json.end() ? Json() : *found;
  };
  if (field("dtype") != "F32") {
    return Corrupt(
        absl::StrCat(who, "want dtype \"F32\", got ", Show(field("dtype"))));
  }
  Entry entry;
  entry.tensor.name = name;
  if (!ParseSizes(field("shape"), &entry.tensor.dims)) {
    return Corrupt(
        absl::StrCat(who, "want a shape of sizes, got ", Show(field("shape"))));
  }
  std::vector<int64_t> offsets;
  if (!ParseSizes(field("data_offsets"), &offsets) || offsets.size() != 2 ||
      offsets[0] > offsets[1]) {
    return Corrupt(absl::StrCat(who, "want data_offsets [begin, end], got ",
                                Show(field("data_offsets"))));
  }
  entry.begin = offsets[0];
  entry.end = offsets[1];
  const std::optional<int64_t> count = NumElements(entry.tensor.dims);
  const int64_t bytes = entry.end - entry.begin;
  if (bytes % sizeof(float) != 0 || count != bytes / sizeof(float)) {
    return Corrupt(absl::StrCat(who, "want 4 bytes for each element of shape ",
                                Show(field("shape")), ", got ", bytes,
                                " bytes"));
  }
  return entry;
}

absl::Status ParseMetadata(const Json& json,
                           std::map<std::string, std::string>* metadata) {
  if (!json.is_object()) {
    return Corrupt(
        absl::StrCat(kMetadata, ": want an object, got ", Show(json)));
  }
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) {
      return Corrupt(absl::StrCat(kMetadata, ": ", Show(key),
                                  ": want a string, got ", Show(value)));
    }
    (*metadata)[key] = value.get<std::string>();
  }
  return absl::OkStatus();
}

// The tensors must fill the `data_bytes` behind the header one by one.
absl::Status CheckLayout(const std::vector<Entry>& entries,
                         int64_t data_bytes) {
  int64_t offset = 0;
  for (const Entry& entry : entries) {
    const std::string who =
        absl::StrCat("tensor ", Show(entry.tensor.name), ": ");
    if (entry.end > data_bytes) {
      return Corrupt(absl::StrCat(who, "want its data within ", data_bytes,
                                  " bytes, got an end at ", entry.end));
    }
    if (entry.begin != offset) {
      return Corrupt(absl::StrCat(who, entry.begin < offset ? "overlap" : "gap",
                                  ": want its data to begin at ", offset,
                                  ", got ", entry.begin));
    }
    offset = entry.end;
  }
  if (offset != data_bytes) {
    return Corrupt(absl::StrCat(
        "want ", offset, " bytes of data for all tensors, got ", data_bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> ParseHeader(const std::string& text) {
  // The parser takes any depth, but copying and printing values recurses. The
  // deepest that is of use are the sizes: header, tensor, shape, size.
  bool deep = false;
  const auto keep = [&deep](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > 3;
    return !deep;
  };
  Json header = Json::parse(text, keep, /*allow_exceptions=*/false);
  if (deep) return Corrupt("want a flat header, got deeper JSON");
  if (header.is_object()) return header;
  return Corrupt(absl::StrCat("want a JSON object as header, got \"",
                              absl::CHexEscape(text.substr(0, 40)), "\""));
}

absl::StatusOr<Checkpoint> Parse(std::ifstream& file, int64_t file_bytes) {
  uint64_t header_bytes = 0;
  const int64_t rest = file_bytes - sizeof(header_bytes);
  if (rest < 0) {
    return Corrupt(
        absl::StrCat("want a safetensors file, got ", file_bytes, " bytes"));
  }
  file.read(reinterpret_cast<char*>(&header_bytes), sizeof(header_bytes));
  if (header_bytes > static_cast<uint64_t>(rest)) {
    return Corrupt(absl::StrCat("want a header of ", header_bytes,
                                " bytes, got ", rest, " bytes of file"));
  }
  std::string text(header_bytes, '\0');
  file.read(text.data(), text.size());
  ASSIGN_OR_RETURN(const Json header, ParseHeader(text));

  Checkpoint checkpoint;
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadata) {
      RETURN_IF_ERROR(ParseMetadata(json, &checkpoint.metadata));
    } else {
      ASSIGN_OR_RETURN(Entry entry, ParseEntry(name, json));
      entries.push_back(std::move(entry));
    }
  }
  // A tensor of no bytes comes before the one that begins at the same place.
  std::stable_sort(
      entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
      });
  RETURN_IF_ERROR(CheckLayout(entries, rest - header_bytes));

  for (Entry& entry : entries) {
    const int64_t bytes = entry.end - entry.begin;
    entry.tensor.values.resize(bytes / sizeof(float));
    file.read(reinterpret_cast<char*>(entry.tensor.values.data()), bytes);
    checkpoint.tensors.push_back(std::move(entry.tensor));
  }
  if (!file) return Corrupt("the file ended or failed while it was read");
  return checkpoint;
}

}  // namespace

absl::Status WriteCheckpoint(const std::string& path,
                             const Checkpoint& checkpoint) {
  AtomicFile file(path);
  file.Write(MakeHeader(checkpoint));
  for (const NamedTensor& tensor : checkpoint.tensors) {
    file.Write(tensor.values.data(), tensor.values.size() * sizeof(float));
  }
  return file.Commit();
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path) {
  std::error_code error;
  const int64_t file_bytes = std::filesystem::file_size(path, error);
  if (error) {
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot read: ", error.message()));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot read: ", std::strerror(errno)));
  }
  absl::StatusOr<Checkpoint> checkpoint = Parse(file, file_bytes);
  if (checkpoint.ok()) return checkpoint;
  return absl::Status(checkpoint.status().code(),
                      absl::StrCat(path, ": ", checkpoint.status().message()));
}

}  // namespace onestep
