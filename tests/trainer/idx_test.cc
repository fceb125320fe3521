// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "trainer/data/random.h"

namespace onestep {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string ImagesHeader(uint32_t count, uint32_t rows, uint32_t cols) {
  return BigEndian(0x803) + BigEndian(count) + BigEndian(rows) +
         BigEndian(cols);
}

std::string LabelsHeader(uint32_t count) {
  return BigEndian(0x801) + BigEndian(count);
}

// Two images of 2 x 3.
std::string TwoImages() { return ImagesHeader(2, 2, 3) + "abcdefghijkl"; }

std::string Gzip(const std::string& bytes) {
  z_stream zlib = {};
  EXPECT_EQ(
      deflateInit2(&zlib, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY),
      Z_OK);
  std::string out(deflateBound(&zlib, bytes.size()), '\0');
  std::string in = bytes;
  zlib.next_in = reinterpret_cast<Bytef*>(in.data());
  zlib.avail_in = in.size();
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = out.size();
  EXPECT_EQ(deflate(&zlib, Z_FINISH), Z_STREAM_END);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  return out;
}

// Does not shrink when it is zipped.
std::string Noise(size_t size) {
  std::string bytes(size, '\0');
  Random random(1);
  for (char& byte : bytes) byte = static_cast<char>(random.Next());
  return bytes;
}

class IdxTest : public testing::Test {
 protected:
  std::string Write(const std::string& bytes) const {
    const std::string path = dir_ + "/file";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // The error of reading `bytes` as images: it names the file, in one line.
  absl::Status ImagesError(const std::string& bytes) const {
    return Checked(ReadIdxImages(Write(bytes)).status());
  }
  absl::Status LabelsError(const std::string& bytes) const {
    return Checked(ReadIdxLabels(Write(bytes)).status());
  }

  const TempFolder folder_;
  const std::string dir_ = folder_.path();

 private:
  absl::Status Checked(const absl::Status& status) const {
    const std::string message(status.message());
    if (!status.ok()) {
      EXPECT_THAT(message, StartsWith(dir_ + "/file: "));
    }
    EXPECT_THAT(message, Not(HasSubstr("\n")));
    return status;
  }
};

TEST_F(IdxTest, ReadsImages) {
  ASSERT_OK_AND_ASSIGN(const IdxImages images,
                       ReadIdxImages(Write(TwoImages())));
  EXPECT_EQ(images.count, 2);
  EXPECT_EQ(images.rows, 2);
  EXPECT_EQ(images.cols, 3);
  EXPECT_EQ(std::string(images.pixels.begin(), images.pixels.end()),
            "abcdefghijkl");
}

TEST_F(IdxTest, ReadsLabels) {
  EXPECT_THAT(*ReadIdxLabels(Write(LabelsHeader(3) + "\x07\x02\x01")),
              ElementsAre(7, 2, 1));
}

TEST_F(IdxTest, ReadsGzipWhateverTheFileIsCalled) {
  ASSERT_OK_AND_ASSIGN(const IdxImages images,
                       ReadIdxImages(Write(Gzip(TwoImages()))));
  EXPECT_EQ(images.pixels.size(), 12u);
  EXPECT_EQ(images.pixels.back(), 'l');
}

TEST_F(IdxTest, ReadsGzipOfSeveralMembers) {
  const std::string bytes = TwoImages();
  ASSERT_OK_AND_ASSIGN(const IdxImages images,
                       ReadIdxImages(Write(Gzip(bytes.substr(0, 10)) +
                                           Gzip("") + Gzip(bytes.substr(10)))));
  EXPECT_EQ(images.pixels.back(), 'l');
}

TEST_F(IdxTest, ReadsFilesLargerThanItsBuffers) {
  const std::string pixels = Noise(1000 * 16 * 16);
  const std::string bytes = ImagesHeader(1000, 16, 16) + pixels;
  for (const std::string& file : {bytes, Gzip(bytes)}) {
    ASSERT_OK_AND_ASSIGN(const IdxImages images, ReadIdxImages(Write(file)));
    EXPECT_TRUE(std::string(images.pixels.begin(), images.pixels.end()) ==
                pixels);
  }
}

TEST_F(IdxTest, ReadsAMemberThatBeginsAtTheEdgeOfTheBuffer) {
  constexpr size_t kBufferBytes = 65536;
  for (const size_t edge : {kBufferBytes - 1, kBufferBytes}) {
    size_t count = kBufferBytes - 100;
    std::string first;
    while (first.size() < edge) {
      ++count;
      first = Gzip(LabelsHeader(count + 1) + Noise(count));
    }
    ASSERT_EQ(first.size(), edge);
    ASSERT_OK_AND_ASSIGN(const std::vector<uint8_t> labels,
                         ReadIdxLabels(Write(first + Gzip("x"))));
    EXPECT_EQ(labels.size(), count + 1);
    EXPECT_EQ(labels.back(), 'x');
  }
}

TEST_F(IdxTest, RefusesAMissingFile) {
  EXPECT_THAT(ReadIdxImages(dir_ + "/none"),
              StatusIs(StatusCode::kNotFound,
                       HasSubstr("/none: cannot read: No such file")));
}

TEST_F(IdxTest, RefusesADirectory) {
  EXPECT_THAT(ReadIdxLabels(dir_), StatusIs(StatusCode::kNotFound,
                                            HasSubstr("want a regular file")));
}

TEST_F(IdxTest, RefusesAPipeWithoutWaitingForItsWriter) {
  const std::string pipe = dir_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(ReadIdxImages(pipe), StatusIs(StatusCode::kNotFound,
                                            HasSubstr("want a regular file")));
}

TEST_F(IdxTest, RefusesAnEmptyFile) {
  EXPECT_THAT(ImagesError(""),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("want IDX images, got an empty file")));
  EXPECT_THAT(LabelsError(Gzip("")),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("want IDX labels, got an empty file")));
}

TEST_F(IdxTest, RefusesAnotherMagicNumber) {
  EXPECT_THAT(
      ImagesError(BigEndian(0xd03) + std::string(12, '\0')),
      StatusIs(StatusCode::kDataLoss, HasSubstr("want IDX images (0x00000803), "
                                                "got 0x00000d03")));
}

TEST_F(IdxTest, RefusesLabelsForImagesAndSaysSo) {
  EXPECT_THAT(
      ImagesError(LabelsHeader(1) + "x"),
      StatusIs(StatusCode::kDataLoss,
               HasSubstr("want IDX images (0x00000803), got IDX labels")));
}

TEST_F(IdxTest, RefusesImagesForLabelsAndSaysSo) {
  EXPECT_THAT(
      LabelsError(TwoImages()),
      StatusIs(StatusCode::kDataLoss,
               HasSubstr("want IDX labels (0x00000801), got IDX images")));
}

TEST_F(IdxTest, RefusesAByteSwappedHeaderAndSaysSo) {
  EXPECT_THAT(ImagesError(std::string("\x03\x08\0\0\x02\0\0\0", 8)),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("0x03080000 (byte-swapped IDX images)")));
  EXPECT_THAT(LabelsError(std::string("\x01\x08\0\0\x02\0\0\0", 8)),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("0x01080000 (byte-swapped IDX labels)")));
}

TEST_F(IdxTest, RefusesHtmlAndSaysSo) {
  EXPECT_THAT(ImagesError("<!DOCTYPE html>\n<html>404</html>\n"),
              StatusIs(StatusCode::kDataLoss, HasSubstr("an HTML page?")));
}

TEST_F(IdxTest, RefusesGzipInGzipAndSaysSo) {
  EXPECT_THAT(ImagesError(Gzip(Gzip(TwoImages()))),
              StatusIs(StatusCode::kDataLoss, HasSubstr("gzipped twice?")));
}

TEST_F(IdxTest, RefusesATruncatedHeader) {
  EXPECT_THAT(ImagesError(TwoImages().substr(0, 15)),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("want a header of 16 bytes, got 15")));
  EXPECT_THAT(LabelsError(std::string(1, '\0')),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("want a header of 8 bytes, got 1")));
}

TEST_F(IdxTest, RefusesATruncatedPayload) {
  const std::string bytes = TwoImages().substr(0, 27);
  for (const std::string& file : {bytes, Gzip(bytes)}) {
    EXPECT_THAT(
        ImagesError(file),
        StatusIs(StatusCode::kDataLoss,
                 HasSubstr("header claims 2 images (12 bytes), file has 11")));
  }
}

TEST_F(IdxTest, RefusesBytesBehindThePayload) {
  for (const std::string& file : {TwoImages() + "x", Gzip(TwoImages() + "x")}) {
    EXPECT_THAT(
        ImagesError(file),
        StatusIs(StatusCode::kDataLoss,
                 HasSubstr("header claims 2 images (12 bytes), file has 13")));
  }
  EXPECT_THAT(LabelsError(LabelsHeader(1) + std::string(100000, '\0')),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("header claims 1 labels (1 bytes), "
                                 "file has at least ")));
}

TEST_F(IdxTest, RefusesAHugeClaimWithoutAllocatingIt) {
  EXPECT_THAT(
      ImagesError(ImagesHeader(0x7fffffff, 28, 28) + "abc"),
      StatusIs(StatusCode::kDataLoss,
               HasSubstr("header claims 2147483647 images (1683627179248 "
                         "bytes), file has 3")));
  EXPECT_THAT(ImagesError(ImagesHeader(0x7fffffff, 32768, 32768)),
              StatusIs(StatusCode::kDataLoss, HasSubstr("file has 0")));
}

TEST_F(IdxTest, RefusesCountsOutOfRange) {
  EXPECT_THAT(ImagesError(ImagesHeader(0, 28, 28)),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("want 1..2147483647 images, got 0")));
  EXPECT_THAT(LabelsError(LabelsHeader(0)),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("want 1..2147483647 labels, got 0")));
  EXPECT_THAT(
      ImagesError(ImagesHeader(0x80000000, 28, 28)),
      StatusIs(StatusCode::kDataLoss, HasSubstr("images, got 2147483648")));
}

TEST_F(IdxTest, RefusesSidesOutOfRange) {
  EXPECT_THAT(ImagesError(ImagesHeader(2, 0, 28)),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("rows and cols in 1..32768, got 0 x 28")));
  EXPECT_THAT(ImagesError(ImagesHeader(2, 28, 0)),
              StatusIs(StatusCode::kDataLoss, HasSubstr("got 28 x 0")));
  EXPECT_THAT(ImagesError(ImagesHeader(1, 32769, 1)),
              StatusIs(StatusCode::kDataLoss, HasSubstr("got 32769 x 1")));
}

TEST_F(IdxTest, RefusesGzipCutAnywhere) {
  const std::string gzip = Gzip(TwoImages());
  for (size_t size = 2; size < gzip.size(); ++size) {
    EXPECT_THAT(ImagesError(gzip.substr(0, size)),
                StatusIs(StatusCode::kDataLoss,
                         HasSubstr("the gzip stream ends too early")))
        << size;
  }
}

TEST_F(IdxTest, RefusesGzipWithAWrongChecksum) {
  std::string gzip = Gzip(TwoImages());
  gzip[gzip.size() - 8] ^= 1;  // the trailer: CRC, then length, 4 bytes each
  EXPECT_THAT(ImagesError(gzip),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("corrupt gzip: incorrect data check, at")));
}

TEST_F(IdxTest, RefusesGzipWithAWrongLength) {
  std::string gzip = Gzip(TwoImages());
  gzip[gzip.size() - 4] ^= 1;
  EXPECT_THAT(ImagesError(gzip),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("corrupt gzip: incorrect length check")));
}

TEST_F(IdxTest, RefusesGarbageBehindGzip) {
  const std::string gzip = Gzip(TwoImages());
  for (const std::string garbage : {"x", "garbage"}) {
    EXPECT_THAT(ImagesError(gzip + garbage),
                StatusIs(StatusCode::kDataLoss,
                         HasSubstr("garbage after the end of the gzip, at "
                                   "byte " +
                                   std::to_string(gzip.size()))));
  }
}

TEST_F(IdxTest, SurvivesRandomDamage) {
  const std::string labels = LabelsHeader(5) + "abcde";
  const std::string originals[] = {TwoImages(), Gzip(TwoImages()), labels,
                                   Gzip(labels)};
  Random random(1);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = originals[i % 4];
    for (uint64_t edits = 1 + random.Below(4); edits > 0; --edits) {
      const uint64_t at = random.Below(bytes.size());
      switch (random.Below(4)) {
        case 0:
          bytes[at] ^= 1 << random.Below(8);
          break;
        case 1:
          bytes[at] = static_cast<char>(random.Next());
          break;
        case 2:
          bytes.insert(at, 1, static_cast<char>(random.Next()));
          break;
        case 3:
          bytes.resize(at + 1);
          break;
      }
    }
    const absl::Status status =
        i % 4 < 2 ? ImagesError(bytes) : LabelsError(bytes);
    if (status.ok()) continue;
    ++refused;
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace onestep
