// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "trainer/data/random.h"

namespace onestep {
namespace {

namespace fs = std::filesystem;

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

Checkpoint SmallCheckpoint() {
  return {.metadata = {{"epoch", "3"}},
          .tensors = {{"w", {2, 1}, {1, -2}}, {"b", {}, {0.5}}}};
}

// A safetensors file with this header, not padded, and this many zero bytes
// of data behind it.
std::string File(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + std::string(data_bytes, '\0');
}

// A file of one tensor, "w", with these fields and 8 bytes of data.
std::string OneTensor(const std::string& fields) {
  return File("{\"w\":{" + fields + "}}", 8);
}

class CheckpointTest : public testing::Test {
 protected:
  std::string Contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  int NumFiles() const {
    return std::distance(fs::directory_iterator(dir_), {});
  }

  // The error of reading `bytes`: it names the file, in one line.
  absl::Status ErrorOf(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    const absl::Status status = ReadCheckpoint(path_).status();
    const std::string message(status.message());
    if (!status.ok()) {
      EXPECT_THAT(message, StartsWith(path_ + ": "));
    }
    EXPECT_THAT(message, Not(HasSubstr("\n")));
    return status;
  }

  const TempFolder folder_;
  const std::string dir_ = folder_.path();
  const std::string path_ = dir_ + "/model.safetensors";
};

auto Corrupt(const std::string& message) {
  return StatusIs(StatusCode::kDataLoss, HasSubstr(message));
}

TEST_F(CheckpointTest, ReadsWhatItWrote) {
  ASSERT_OK(WriteCheckpoint(path_, SmallCheckpoint()));
  ASSERT_OK_AND_ASSIGN(const Checkpoint read, ReadCheckpoint(path_));
  EXPECT_EQ(read.metadata, SmallCheckpoint().metadata);
  ASSERT_EQ(read.tensors.size(), 2u);
  EXPECT_EQ(read.tensors[0].name, "w");
  EXPECT_THAT(read.tensors[0].dims, ElementsAre(2, 1));
  EXPECT_THAT(read.tensors[0].values, ElementsAre(1, -2));
  EXPECT_EQ(read.tensors[1].name, "b");
  EXPECT_THAT(read.tensors[1].dims, IsEmpty());
  EXPECT_THAT(read.tensors[1].values, ElementsAre(0.5));
}

TEST_F(CheckpointTest, KeepsEveryBitOfAValue) {
  const std::vector<uint32_t> bits = {0x7fc12345, 0xff800000, 0x80000000, 1};
  NamedTensor tensor{"w", {4}, {}};
  for (const uint32_t b : bits)
    tensor.values.push_back(std::bit_cast<float>(b));
  ASSERT_OK(WriteCheckpoint(path_, {.metadata = {}, .tensors = {tensor}}));
  ASSERT_OK_AND_ASSIGN(const Checkpoint read, ReadCheckpoint(path_));
  for (size_t i = 0; i < bits.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(read.tensors[0].values[i]), bits[i]);
  }
}

TEST_F(CheckpointTest, KeepsEmptyTensorsInTheirPlace) {
  const Checkpoint checkpoint = {
      .metadata = {},
      .tensors = {{"z", {0, 5}, {}}, {"w", {1}, {1}}, {"a", {0}, {}}}};
  ASSERT_OK(WriteCheckpoint(path_, checkpoint));
  ASSERT_OK_AND_ASSIGN(const Checkpoint read, ReadCheckpoint(path_));
  ASSERT_EQ(read.tensors.size(), 3u);
  EXPECT_EQ(read.tensors[0].name, "z");
  EXPECT_THAT(read.tensors[0].dims, ElementsAre(0, 5));
  EXPECT_EQ(read.tensors[1].name, "w");
  EXPECT_EQ(read.tensors[2].name, "a");
}

TEST_F(CheckpointTest, WritesTheDocumentedBytes) {
  ASSERT_OK(WriteCheckpoint(path_, SmallCheckpoint()));
  const std::string header =
      R"({"__metadata__":{"epoch":"3"},)"
      R"("b":{"data_offsets":[8,12],"dtype":"F32","shape":[]},)"
      R"("w":{"data_offsets":[0,8],"dtype":"F32","shape":[2,1]}})"
      "      ";
  ASSERT_EQ(header.size() % 8, 0u);
  EXPECT_EQ(
      Contents(),
      File(header, 0) + std::string("\0\0\x80\x3f\0\0\0\xc0\0\0\0\x3f", 12));
}

TEST_F(CheckpointTest, WritesACheckpointOfNothing) {
  ASSERT_OK(WriteCheckpoint(path_, {}));
  EXPECT_EQ(Contents(), File("{}      ", 0));
  ASSERT_OK_AND_ASSIGN(const Checkpoint read, ReadCheckpoint(path_));
  EXPECT_THAT(read.tensors, IsEmpty());
  EXPECT_THAT(read.metadata, IsEmpty());
}

TEST_F(CheckpointTest, ReplacesTheOldFileAndLeavesNoOther) {
  std::ofstream(path_) << "old";
  ASSERT_OK(WriteCheckpoint(path_, SmallCheckpoint()));
  EXPECT_OK(ReadCheckpoint(path_));
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(CheckpointTest, WritesIntoTheWorkingDirectory) {
  const fs::path old_dir = fs::current_path();
  fs::current_path(dir_);
  EXPECT_OK(WriteCheckpoint("model.safetensors", SmallCheckpoint()));
  fs::current_path(old_dir);
  EXPECT_OK(ReadCheckpoint(path_));
}

TEST_F(CheckpointTest, ReplacesBytesThatAreNotUtf8) {
  ASSERT_OK(WriteCheckpoint(
      path_, {.metadata = {{"data", "caf\xe9"}}, .tensors = {}}));
  EXPECT_EQ(ReadCheckpoint(path_)->metadata.at("data"), "caf\xef\xbf\xbd");
}

TEST_F(CheckpointTest, CannotWriteWhereThereIsNoFolder) {
  const std::string path = dir_ + "/none/model.safetensors";
  EXPECT_THAT(WriteCheckpoint(path, SmallCheckpoint()),
              StatusIs(StatusCode::kFailedPrecondition,
                       "cannot write " + path + ": No such file or directory"));
}

TEST_F(CheckpointTest, CannotWriteOverAFolderAndCleansUp) {
  fs::create_directory(path_);
  EXPECT_THAT(
      WriteCheckpoint(path_, SmallCheckpoint()),
      StatusIs(StatusCode::kFailedPrecondition, HasSubstr("Is a directory")));
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(CheckpointTest, KeepsTheOldFileWhenThereIsNoRoomForTheNew) {
  ASSERT_OK(WriteCheckpoint(path_, SmallCheckpoint()));
  const std::string old_contents = Contents();

  // A limit on the size of files stands for a full disk.
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit limit = {4096, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = WriteCheckpoint(
      path_,
      {.metadata = {}, .tensors = {{"w", {2000}, std::vector<float>(2000)}}});
  setrlimit(RLIMIT_FSIZE, &old_limit);
  signal(SIGXFSZ, old_handler);

  EXPECT_THAT(status, StatusIs(StatusCode::kFailedPrecondition,
                               HasSubstr(path_ + ": File too large")));
  EXPECT_EQ(Contents(), old_contents);
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(CheckpointTest, RefusesAMissingFile) {
  EXPECT_THAT(ReadCheckpoint(path_),
              StatusIs(StatusCode::kNotFound,
                       path_ + ": cannot read: No such file or directory"));
}

TEST_F(CheckpointTest, RefusesADirectory) {
  EXPECT_THAT(ReadCheckpoint(dir_),
              StatusIs(StatusCode::kNotFound, HasSubstr("Is a directory")));
}

TEST_F(CheckpointTest, RefusesAFileTooShortForALength) {
  EXPECT_THAT(ErrorOf("1234567"),
              Corrupt("want a safetensors file, got 7 bytes"));
}

TEST_F(CheckpointTest, RefusesAHeaderLongerThanTheFile) {
  EXPECT_THAT(ErrorOf(File("{}", 0).substr(0, 9)),
              Corrupt("want a header of 2 bytes, got 1 bytes of file"));
  EXPECT_THAT(ErrorOf(std::string(8, '\xff')),
              Corrupt("want a header of 18446744073709551615 bytes"));
}

TEST_F(CheckpointTest, RefusesAHeaderThatIsNoJsonObject) {
  EXPECT_THAT(ErrorOf(File("", 0)), Corrupt("want a JSON object as header"));
  EXPECT_THAT(ErrorOf(File("[1]", 0)), Corrupt("got \"[1]\""));
  EXPECT_THAT(ErrorOf(File("{\"w\":\n\xff", 0)),
              Corrupt(R"(got "{\"w\":\n\xff")"));
  EXPECT_THAT(ErrorOf(File("{\"w\":1e999}", 0)),
              Corrupt("want a JSON object as header"));
}

TEST_F(CheckpointTest, RefusesDeepJsonWithoutExhaustingTheStack) {
  constexpr int kDepth = 1000000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  for (const std::string& fields :
       {deep, "{\"dtype\":" + deep + "}",
        R"({"dtype":"F32","shape":)" + deep + "}"}) {
    EXPECT_THAT(ErrorOf(File("{\"w\":" + fields + "}", 0)),
                Corrupt("want a flat header, got deeper JSON"));
  }
}

TEST_F(CheckpointTest, RefusesMetadataThatIsNoMapOfStrings) {
  EXPECT_THAT(ErrorOf(File(R"({"__metadata__":[1]})", 0)),
              Corrupt("__metadata__: want an object, got [1]"));
  EXPECT_THAT(ErrorOf(File(R"({"__metadata__":{"a\n":{"b":1}}})", 0)),
              Corrupt(R"(__metadata__: "a\n": want a string, got {"b":1})"));
}

TEST_F(CheckpointTest, RefusesATensorThatIsNoObject) {
  EXPECT_THAT(ErrorOf(File(R"({"w\n":1})", 0)),
              Corrupt(R"(tensor "w\n": want an object, got 1)"));
}

TEST_F(CheckpointTest, RefusesAnotherDtype) {
  EXPECT_THAT(
      ErrorOf(OneTensor(R"("dtype":"F16","shape":[4],"data_offsets":[0,8])")),
      Corrupt(R"(tensor "w": want dtype "F32", got "F16")"));
  EXPECT_THAT(ErrorOf(OneTensor(R"("shape":[2],"data_offsets":[0,8])")),
              Corrupt(R"(tensor "w": want dtype "F32", got null)"));
}

TEST_F(CheckpointTest, RefusesAShapeThatIsNoListOfSizes) {
  for (const std::string shape :
       {"2", "[-2]", "[2.0]", "[\"2\"]", "[9223372036854775808]", "null"}) {
    EXPECT_THAT(ErrorOf(OneTensor(R"("dtype":"F32","data_offsets":[0,8],)"
                                  R"("shape":)" +
                                  shape)),
                Corrupt("tensor \"w\": want a shape of sizes, got " + shape));
  }
}

TEST_F(CheckpointTest, RefusesOffsetsThatAreNoRange) {
  for (const std::string offsets :
       {"8", "[8]", "[0,8,8]", "[-8,0]", "[8,0]", "null"}) {
    EXPECT_THAT(ErrorOf(OneTensor(R"("dtype":"F32","shape":[2],)"
                                  R"("data_offsets":)" +
                                  offsets)),
                Corrupt("tensor \"w\": want data_offsets [begin, end], got " +
                        offsets));
  }
}

TEST_F(CheckpointTest, RefusesBytesThatDoNotFitTheShape) {
  for (const std::string shape :
       {"[1]", "[]", "[3]", "[4294967296,4294967296]",
        "[4611686018427387904,2]", "[9223372036854775807]"}) {
    EXPECT_THAT(ErrorOf(OneTensor(R"("dtype":"F32","data_offsets":[0,8],)"
                                  R"("shape":)" +
                                  shape)),
                Corrupt("tensor \"w\": want 4 bytes for each element of "
                        "shape " +
                        shape + ", got 8 bytes"));
  }
  EXPECT_THAT(
      ErrorOf(OneTensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,7])")),
      Corrupt("got 7 bytes"));
}

TEST_F(CheckpointTest, RefusesDataBeyondTheFile) {
  EXPECT_THAT(
      ErrorOf(OneTensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,12])")),
      Corrupt("tensor \"w\": want its data within 8 bytes, got an end at 12"));
}

TEST_F(CheckpointTest, RefusesDataThatOverlapsOrHasGaps) {
  const std::string w = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])";
  EXPECT_THAT(
      ErrorOf(File("{\"v\":{" + w + "},\"w\":{" + w + "}}", 8)),
      Corrupt("tensor \"w\": overlap: want its data to begin at 4, got 0"));
  EXPECT_THAT(
      ErrorOf(OneTensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])")),
      Corrupt("tensor \"w\": gap: want its data to begin at 0, got 4"));
  EXPECT_THAT(ErrorOf(OneTensor(w)),
              Corrupt("want 4 bytes of data for all tensors, got 8"));
}

TEST_F(CheckpointTest, RefusesAFileCutAnywhere) {
  ASSERT_OK(WriteCheckpoint(path_, SmallCheckpoint()));
  const std::string bytes = Contents();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(ErrorOf(bytes.substr(0, size)), Corrupt("want ")) << size;
  }
}

TEST_F(CheckpointTest, SurvivesRandomDamage) {
  ASSERT_OK(WriteCheckpoint(path_, SmallCheckpoint()));
  const std::string original = Contents();
  Random random(1);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = original;
    for (uint64_t edits = 1 + random.Below(4); edits > 0; --edits) {
      const uint64_t at = random.Below(bytes.size());
      switch (random.Below(4)) {
        case 0:
          bytes[at] ^= 1 << random.Below(8);
          break;
        case 1:
          bytes[at] = "0123456789-[]{},:\" ex"[random.Below(21)];
          break;
        case 2:
          bytes.insert(at, 1, bytes[random.Below(bytes.size())]);
          break;
        case 3:
          bytes.resize(at + 1 + random.Below(8));
          break;
      }
    }
    const absl::Status status = ErrorOf(bytes);
    if (status.ok()) continue;
    ++refused;
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace onestep
