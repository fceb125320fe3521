// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status.h"
#include "trainer/file_kind.h"

namespace onestep {
namespace {

constexpr uint32_t kImagesMagic = 0x00000803;
constexpr uint32_t kLabelsMagic = 0x00000801;
constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();
// kMaxCount * kMaxSide * kMaxSide still fits in 63 bits.
constexpr int64_t kMaxSide = 32768;
constexpr int64_t kChunkBytes = 1 << 16;

// The bytes of a file, unzipped on the way when they begin as gzip does.
class ByteSource {
 public:
  explicit ByteSource(std::string path) : path_(std::move(path)) {
    zlib_.next_in = input_.data();
  }
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  ~ByteSource() {
    if (gzip_) inflateEnd(&zlib_);
  }

  absl::Status Open() {
    const std::string other = NoRegularFile(path_);
    if (!other.empty()) {
      return absl::NotFoundError(absl::StrCat(path_, ": ", other));
    }
    file_.reset(std::fopen(path_.c_str(), "rb"));
    if (file_ == nullptr) return Unreadable();
    RETURN_IF_ERROR(Fill());
    if (!AtGzipMember()) return absl::OkStatus();
    // 16: a gzip wrapper, whose CRC and length zlib then checks.
    if (inflateInit2(&zlib_, MAX_WBITS + 16) != Z_OK) return NoMemory();
    gzip_ = true;
    return absl::OkStatus();
  }

  // Fewer than `want` bytes only at the end of the file, which is then known
  // to be sound.
  absl::StatusOr<std::vector<uint8_t>> Read(int64_t want) {
    std::vector<uint8_t> bytes;
    while (static_cast<int64_t>(bytes.size()) < want) {
      const int64_t have = bytes.size();
      bytes.resize(std::min(want, have + kChunkBytes));
      const int64_t room = bytes.size() - have;
      ASSIGN_OR_RETURN(const int64_t got,
                       gzip_ ? ReadGzip(bytes.data() + have, room)
                             : ReadPlain(bytes.data() + have, room));
      bytes.resize(have + got);
      if (got == 0) break;
    }
    return bytes;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  // Moves what is left of the input to its front and reads more behind it.
  absl::Status Fill() {
    std::memmove(input_.data(), zlib_.next_in, zlib_.avail_in);
    const size_t got = std::fread(input_.data() + zlib_.avail_in, 1,
                                  input_.size() - zlib_.avail_in, file_.get());
    if (std::ferror(file_.get())) return Unreadable();
    zlib_.next_in = input_.data();
    zlib_.avail_in += got;
    file_bytes_ += got;
    return absl::OkStatus();
  }

  bool AtGzipMember() const {
    return zlib_.avail_in >= 2 && zlib_.next_in[0] == 0x1f &&
           zlib_.next_in[1] == 0x8b;
  }

  absl::StatusOr<int64_t> ReadPlain(uint8_t* out, int64_t room) {
    if (zlib_.avail_in == 0) RETURN_IF_ERROR(Fill());
    const int64_t got = std::min<int64_t>(room, zlib_.avail_in);
    std::memcpy(out, zlib_.next_in, got);
    zlib_.next_in += got;
    zlib_.avail_in -= got;
    return got;
  }

  absl::StatusOr<int64_t> ReadGzip(uint8_t* out, int64_t room) {
    zlib_.next_out = out;
    zlib_.avail_out = room;
    while (zlib_.avail_out == room && !ended_) {
      if (zlib_.avail_in == 0) RETURN_IF_ERROR(Fill());
      if (zlib_.avail_in == 0) {
        return Corrupt("the gzip stream ends too early");
      }
      const int result = inflate(&zlib_, Z_NO_FLUSH);
      if (result == Z_MEM_ERROR) return NoMemory();
      if (result == Z_STREAM_END) {
        RETURN_IF_ERROR(EndMember());
      } else if (result != Z_OK) {
        return Corrupt(absl::StrCat(
            "corrupt gzip: ", zlib_.msg == nullptr ? "bad data" : zlib_.msg));
      }
    }
    return room - zlib_.avail_out;
  }

  // After a member comes the end of the file or another member.
  absl::Status EndMember() {
    if (zlib_.avail_in < 2) RETURN_IF_ERROR(Fill());
    if (zlib_.avail_in == 0) {
      ended_ = true;
      return absl::OkStatus();
    }
    if (!AtGzipMember()) return Corrupt("garbage after the end of the gzip");
    inflateReset(&zlib_);
    return absl::OkStatus();
  }

  absl::Status Corrupt(const std::string& what) const {
    return absl::DataLossError(absl::StrCat(path_, ": ", what, ", at byte ",
                                            file_bytes_ - zlib_.avail_in));
  }
  absl::Status Unreadable() const {
    return absl::NotFoundError(
        absl::StrCat(path_, ": cannot read: ", std::strerror(errno)));
  }
  absl::Status NoMemory() const {
    return absl::ResourceExhaustedError(
        absl::StrCat(path_, ": no memory to unzip"));
  }

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::array<uint8_t, kChunkBytes> input_;
  int64_t file_bytes_ = 0;  // read from the file so far
  z_stream zlib_ = {};      // holds the input of a plain file too
  bool gzip_ = false;
  bool ended_ = false;
};

uint32_t BigEndian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 |
         uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

const char* KindName(uint32_t magic) {
  return magic == kImagesMagic ? "images" : "labels";
}

// What a file with the wrong magic number seems to be.
std::string Describe(uint32_t magic) {
  std::string hex = absl::StrFormat("0x%08x", magic);
  if (magic == kImagesMagic || magic == kLabelsMagic) {
    return absl::StrCat("IDX ", KindName(magic), " (", hex, ")");
  }
  if (const uint32_t swapped = __builtin_bswap32(magic);
      swapped == kImagesMagic || swapped == kLabelsMagic) {
    return absl::StrCat(hex, " (byte-swapped IDX ", KindName(swapped), ")");
  }
  if (magic >> 24 == '<') return absl::StrCat(hex, " (an HTML page?)");
  if (magic >> 16 == 0x1f8b) return absl::StrCat(hex, " (gzipped twice?)");
  return hex;
}

struct IdxFile {
  std::array<int64_t, 3> dims = {1, 1, 1};
  std::vector<uint8_t> payload;
};

absl::Status CheckDims(const std::string& path, const IdxFile& file,
                       const char* kind) {
  const auto [count, rows, cols] = file.dims;
  if (count < 1 || count > kMaxCount) {
    return absl::DataLossError(absl::StrCat(
        path, ": header: want 1..", kMaxCount, " ", kind, ", got ", count));
  }
  if (std::min(rows, cols) < 1 || std::max(rows, cols) > kMaxSide) {
    return absl::DataLossError(
        absl::StrCat(path, ": header: want rows and cols in 1..", kMaxSide,
                     ", got ", rows, " x ", cols));
  }
  return absl::OkStatus();
}

absl::StatusOr<IdxFile> ReadIdx(const std::string& path, uint32_t magic) {
  const char* kind = KindName(magic);
  ByteSource source(path);
  RETURN_IF_ERROR(source.Open());

  const int64_t rank = magic & 0xff;
  const int64_t header_bytes = 4 + 4 * rank;
  ASSIGN_OR_RETURN(const std::vector<uint8_t> header,
                   source.Read(header_bytes));
  if (header.empty()) {
    return absl::DataLossError(
        absl::StrCat(path, ": want IDX ", kind, ", got an empty file"));
  }
  if (header.size() >= 4 && BigEndian(header.data()) != magic) {
    return absl::DataLossError(absl::StrCat(
        path, ": want IDX ", kind, absl::StrFormat(" (0x%08x)", magic),
        ", got ", Describe(BigEndian(header.data()))));
  }
  if (static_cast<int64_t>(header.size()) < header_bytes) {
    return absl::DataLossError(absl::StrCat(path, ": want a header of ",
                                            header_bytes, " bytes, got ",
                                            header.size()));
  }

  IdxFile file;
  for (int64_t i = 0; i < rank; ++i) {
    file.dims[i] = BigEndian(header.data() + 4 + 4 * i);
  }
  RETURN_IF_ERROR(CheckDims(path, file, kind));

  // One chunk more than claimed, to reach the end and see what lies there.
  const int64_t claimed = file.dims[0] * file.dims[1] * file.dims[2];
  ASSIGN_OR_RETURN(file.payload, source.Read(claimed + kChunkBytes));
  const int64_t got = file.payload.size();
  if (got != claimed) {
    return absl::DataLossError(
        absl::StrCat(path, ": header claims ", file.dims[0], " ", kind, " (",
                     claimed, " bytes), file has ",
                     got == claimed + kChunkBytes ? "at least " : "", got));
  }
  return file;
}

}  // namespace

absl::StatusOr<IdxImages> ReadIdxImages(const std::string& path) {
  ASSIGN_OR_RETURN(IdxFile file, ReadIdx(path, kImagesMagic));
  return IdxImages{file.dims[0], file.dims[1], file.dims[2],
                   std::move(file.payload)};
}

absl::StatusOr<std::vector<uint8_t>> ReadIdxLabels(const std::string& path) {
  ASSIGN_OR_RETURN(IdxFile file, ReadIdx(path, kLabelsMagic));
  return std::move(file.payload);
}

}  // namespace onestep
