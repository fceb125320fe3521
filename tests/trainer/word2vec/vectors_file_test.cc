// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/vectors_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "trainer/data/random.h"

namespace onestep {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr float kInf = std::numeric_limits<float>::infinity();

// As gensim 4.4.0 writes these three words, whose values are hard.
constexpr char kText[] =
    "3 3\nthe 0.1 -2.5e-10 1e+20\nna\xc3\xafve 3.4028235e+38 2.0 -1.0\n"
    "x 0.33333334 1e-45 -0.0\n";
const std::string kBinary(
    "3 3\nthe \xcd\xcc\xcc\x3d\x5f\x70\x89\xaf\xec\x78\xad\x60na\xc3\xafve "
    "\xff\xff\x7f\x7f\x00\x00\x00\x40\x00\x00\x80\xbfx \xab\xaa\xaa\x3e\x01\x00"
    "\x00\x00\x00\x00\x00\x80",
    53);

// Each row `stride` floats, of which the last are not the file's.
struct Table {
  std::vector<std::string> words;
  std::vector<int64_t> counts;
  int64_t dim = 0, stride = 0;
  std::vector<float> rows;

  VectorsView View() const {
    VectorsView view;
    view.size = std::ssize(words);
    view.dim = dim;
    view.rows = rows.data();
    view.stride = stride;
    view.word = [this](int64_t i) { return std::string_view(words[i]); };
    if (!counts.empty()) view.count = [this](int64_t i) { return counts[i]; };
    return view;
  }
};

// Words "0", "1", ... with finite values of any bits.
Table AnyTable(int64_t size, int64_t dim, int64_t stride) {
  Table table;
  table.dim = dim;
  table.stride = stride;
  Random random(7);
  for (int64_t i = 0; i < size; ++i) {
    table.words.push_back(std::to_string(i));
    table.counts.push_back(size - i);
    for (int64_t j = 0; j < stride; ++j) {
      float value =
          std::bit_cast<float>(static_cast<uint32_t>(random.Next() >> 32));
      if (!std::isfinite(value)) value = 0;
      table.rows.push_back(value);
    }
  }
  return table;
}

class VectorsFileTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  absl::StatusOr<WordVectors> Parse(const std::string& bytes,
                                    int threads = 1) const {
    return ReadVectors(Write("given", bytes), threads);
  }
  void ExpectCorrupt(const std::string& bytes, const std::string& part) const {
    EXPECT_THAT(Parse(bytes),
                StatusIs(StatusCode::kDataLoss,
                         AllOf(HasSubstr("/given: "), HasSubstr(part),
                               Not(HasSubstr("\n")))));
  }

  TempFolder folder_;
};

void WriteTensors(const std::string& path, const Table& table) {
  ASSERT_OK(WriteVocabulary(VocabularyPath(path), table.View()));
  ASSERT_OK(WriteVectorsSafetensors(path, table.View()));
}

std::vector<std::string> WordsOf(const WordVectors& vectors) {
  std::vector<std::string> words;
  for (int64_t i = 0; i < vectors.size(); ++i) {
    words.emplace_back(vectors.words[i]);
  }
  return words;
}

std::vector<float> RowOf(const WordVectors& vectors, int64_t i) {
  return {vectors.row(i), vectors.row(i) + vectors.dim};
}

void ExpectSame(const WordVectors& vectors, const Table& table) {
  EXPECT_EQ(WordsOf(vectors), table.words);
  ASSERT_EQ(vectors.dim, table.dim);
  for (int64_t i = 0; i < vectors.size(); ++i) {
    ASSERT_EQ(std::memcmp(vectors.row(i), table.View().row(i),
                          table.dim * sizeof(float)),
              0)
        << "row " << i;
  }
}

void ExpectGolden(const WordVectors& vectors) {
  EXPECT_THAT(WordsOf(vectors), ElementsAre("the", "na\xc3\xafve", "x"));
  EXPECT_THAT(RowOf(vectors, 0), ElementsAre(0.1f, -2.5e-10f, 1e20f));
  EXPECT_THAT(RowOf(vectors, 1), ElementsAre(FLT_MAX, 2.0f, -1.0f));
  EXPECT_THAT(RowOf(vectors, 2),
              ElementsAre(1.0f / 3, std::bit_cast<float>(1), -0.0f));
  EXPECT_TRUE(std::signbit(vectors.row(2)[2]));
}

TEST_F(VectorsFileTest, ReadsGensimsText) {
  ASSERT_OK_AND_ASSIGN(const WordVectors vectors, Parse(kText));
  ExpectGolden(vectors);
}

TEST_F(VectorsFileTest, ReadsGensimsBinary) {
  ASSERT_OK_AND_ASSIGN(const WordVectors vectors, Parse(kBinary));
  ExpectGolden(vectors);
}

TEST_F(VectorsFileTest, WritesBinaryRowsWithANewline) {
  ASSERT_OK_AND_ASSIGN(const WordVectors vectors, Parse(kBinary));
  ASSERT_OK(WriteVectorsBinary(Path("v.bin"), vectors.View()));
  std::string with_newlines = kBinary;
  with_newlines.insert(53, "\n");
  with_newlines.insert(39, "\n");
  with_newlines.insert(20, "\n");
  EXPECT_EQ(Read("v.bin"), with_newlines);
  ASSERT_OK_AND_ASSIGN(const WordVectors again, ReadVectors(Path("v.bin"), 1));
  ExpectGolden(again);
}

TEST_F(VectorsFileTest, WritesTheShortestDecimals) {
  ASSERT_OK_AND_ASSIGN(const WordVectors vectors, Parse(kText));
  ASSERT_OK(WriteVectorsText(Path("v.txt"), vectors.View(), 2));
  EXPECT_EQ(Read("v.txt"),
            "3 3\nthe 0.1 -2.5e-10 1e+20\nna\xc3\xafve 3.4028235e+38 2 -1\n"
            "x 0.33333334 1e-45 -0\n");
}

TEST_F(VectorsFileTest, WritesWordsAndCounts) {
  const Table table{{"the", "x"}, {30, 10}, 1, 1, {1, 2}};
  ASSERT_OK(WriteVocabulary(Path("v.vocab"), table.View()));
  EXPECT_EQ(Read("v.vocab"), "the 30\nx 10\n");
}

TEST_F(VectorsFileTest, EveryFormComesBackBitForBit) {
  const Table table = AnyTable(3000, 5, 16);
  for (const int threads : {1, 3}) {
    const std::string text = Path("v.txt"), binary = Path("v.bin"),
                      tensors = Path("v.safetensors");
    ASSERT_OK(WriteVectorsText(text, table.View(), threads));
    ASSERT_OK(WriteVectorsBinary(binary, table.View()));
    WriteTensors(tensors, table);
    for (const std::string& path : {text, binary, tensors}) {
      SCOPED_TRACE(path);
      ASSERT_OK_AND_ASSIGN(const WordVectors vectors,
                           ReadVectors(path, threads));
      ExpectSame(vectors, table);
      EXPECT_EQ(vectors.path, path);
      EXPECT_EQ(vectors.repeated, 0);
    }
    ASSERT_OK_AND_ASSIGN(const WordVectors counted, ReadVectors(tensors, 1));
    EXPECT_EQ(counted.counts, table.counts);
  }
}

TEST_F(VectorsFileTest, ThreadsWriteTheSameText) {
  const Table table = AnyTable(2000, 3, 3);
  ASSERT_OK(WriteVectorsText(Path("one"), table.View(), 1));
  ASSERT_OK(WriteVectorsText(Path("three"), table.View(), 3));
  EXPECT_EQ(Read("one"), Read("three"));
}

TEST_F(VectorsFileTest, WordsAreAnyBytesButSpaceAndNewline) {
  const Table table{{"", "\xff\xfe", std::string("a\0b", 3), "tab\t", "7"},
                    {},
                    1,
                    1,
                    {1, 2, 3, 4, 5}};
  ASSERT_OK(WriteVectorsText(Path("v.txt"), table.View(), 1));
  ASSERT_OK(WriteVectorsBinary(Path("v.bin"), table.View()));
  WriteTensors(Path("v.safetensors"), table);
  for (const char* name : {"v.txt", "v.bin", "v.safetensors"}) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const WordVectors vectors, ReadVectors(Path(name), 2));
    ExpectSame(vectors, table);
  }
}

TEST_F(VectorsFileTest, AWordWithASpaceIsRefusedByName) {
  for (const std::string word : {"new york", "a\nb"}) {
    const Table table{{"a", word}, {}, 1, 1, {1, 2}};
    const auto refused =
        StatusIs(StatusCode::kInvalidArgument,
                 HasSubstr(word == "a\nb" ? "'a\\nb'" : "'new york'"));
    EXPECT_THAT(WriteVectorsText(Path("v"), table.View(), 1), refused);
    EXPECT_THAT(WriteVectorsBinary(Path("v"), table.View()), refused);
    EXPECT_THAT(WriteVocabulary(Path("v"), table.View()), refused);
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  }
}

TEST_F(VectorsFileTest, ReadsTheTextsOfOthers) {
  const std::string forms[] = {"2 2\n</s> 0.5 -1 \nof 2 3.25 \n",  // fastText
                               "</s> 0.5 -1\nof 2 3.25\n",         // GloVe
                               "2 2\r\n</s> 0.5 -1\r\nof 2 3.25\r\n",
                               "2 2 \n</s>  0.50000\t-1\nof 2e0 3.25",
                               "2 2\n</s> 0.5 -1\nof 2 3.25\n\n\n"};
  for (const std::string& form : forms) {
    SCOPED_TRACE(form);
    ASSERT_OK_AND_ASSIGN(const WordVectors vectors, Parse(form, 2));
    EXPECT_THAT(WordsOf(vectors), ElementsAre("</s>", "of"));
    EXPECT_THAT(RowOf(vectors, 0), ElementsAre(0.5f, -1.0f));
    EXPECT_THAT(RowOf(vectors, 1), ElementsAre(2.0f, 3.25f));
  }
}

TEST_F(VectorsFileTest, ValuesBelowAFloatAreTheNearest) {
  ASSERT_OK_AND_ASSIGN(const WordVectors vectors,
                       Parse("1 2\na 1e-60 3e-46\n"));
  EXPECT_THAT(RowOf(vectors, 0), ElementsAre(0.0f, 0.0f));
}

TEST_F(VectorsFileTest, ValuesThatAreNotFiniteAreRefusedByWord) {
  const std::string refused = "want finite values, got others for 'b'";
  for (const char* value : {"nan", "-inf", "1e39"}) {
    ExpectCorrupt(absl::StrCat("2 2\na 0.1 0.2\nb 0.3 ", value, "\n"), refused);
  }
  Table table{{"a", "b"}, {}, 1, 1, {1, kInf}};
  ASSERT_OK(WriteVectorsBinary(Path("v.bin"), table.View()));
  table.rows[1] = std::nanf("");
  WriteTensors(Path("v.safetensors"), table);
  for (const char* name : {"v.bin", "v.safetensors"}) {
    EXPECT_THAT(ReadVectors(Path(name), 1),
                StatusIs(StatusCode::kDataLoss,
                         HasSubstr(absl::StrCat(name, ": ", refused))));
  }
}

TEST_F(VectorsFileTest, AByteOrderMarkIsNoPartOfTheFirstWord) {
  for (const char* text : {"\xef\xbb\xbf"
                           "1 1\na 1\n",
                           "\xef\xbb\xbf"
                           "a 1\n"}) {
    ASSERT_OK_AND_ASSIGN(const WordVectors vectors, Parse(text));
    EXPECT_THAT(WordsOf(vectors), ElementsAre("a"));
  }
}

TEST_F(VectorsFileTest, SaysHowToUnpackWhatIsPacked) {
  ExpectCorrupt("\x1f\x8b\x08 packed",
                "want an unpacked file, got gzip: try gunzip -k ");
}

TEST_F(VectorsFileTest, TellsATextWhoseValuesTakeFourBytes) {
  ASSERT_OK_AND_ASSIGN(const WordVectors vectors,
                       Parse("2 2\na 0.1 0.2\nb 0.3 0.4\n"));
  EXPECT_THAT(RowOf(vectors, 1), ElementsAre(0.3f, 0.4f));
}

// One value a row, whose four bytes are printable.
TEST_F(VectorsFileTest, TellsABinaryFileThatReadsLikeText) {
  ASSERT_OK_AND_ASSIGN(const WordVectors vectors, Parse("2 1\na 12.5b 1 2."));
  EXPECT_THAT(WordsOf(vectors), ElementsAre("a", "b"));
  float value;
  std::memcpy(&value, "1 2.", sizeof(value));
  EXPECT_EQ(vectors.row(1)[0], value);
}

TEST_F(VectorsFileTest, TheFirstOfAWordsRowsCounts) {
  for (const int threads : {1, 2}) {
    ASSERT_OK_AND_ASSIGN(const WordVectors vectors,
                         Parse("4 1\na 1\nb 2\na 3\nc 4\n", threads));
    EXPECT_THAT(WordsOf(vectors), ElementsAre("a", "b", "c"));
    EXPECT_EQ(vectors.repeated, 1);
    EXPECT_EQ(vectors.words.Find("c"), 2);
    EXPECT_EQ(vectors.row(0)[0], 1);
    EXPECT_EQ(vectors.row(2)[0], 4);
  }
}

TEST_F(VectorsFileTest, RepeatedWordsTakeTheirCountsWithThem) {
  const Table table{{"a", "a", "b"}, {3, 2, 1}, 1, 1, {1, 2, 3}};
  WriteTensors(Path("v.safetensors"), table);
  ASSERT_OK_AND_ASSIGN(const WordVectors vectors,
                       ReadVectors(Path("v.safetensors"), 1));
  EXPECT_THAT(vectors.counts, ElementsAre(3, 1));
  EXPECT_EQ(vectors.row(1)[0], 3);
}

TEST_F(VectorsFileTest, AWrongTextNamesTheLine) {
  ExpectCorrupt("2 2\na 1 2\nb 1\n", "line 3: want a word and 2 values, got 1");
  ExpectCorrupt("2 2\na 1 2\nb 1 2 3\n",
                "line 3: want a word and 2 values, got 3");
  ExpectCorrupt("a 1 2\nb 1 2\nc 1 2x\n", "line 3: want a number, got '2x'");
  ExpectCorrupt("2 1\na 1\n\nb 2\n",
                "want 2 words of 1 values as line 1 says, "
                "got 3 lines");
  ExpectCorrupt("a 1\n\nb 2\n", "line 2: want a word and 1 values, got 0");
  ExpectCorrupt("3 1\na 1\nb 2\n", "want 3 words of 1 values as line 1 says");
  ExpectCorrupt("1 1\na 1\nb 2\n", "got 2 lines");
  ExpectCorrupt("call me ishmael\n", "line 1: want the numbers of words");
  ExpectCorrupt("", "line 1: want the numbers of words");
  ExpectCorrupt("0 5\n", "want 1 to 2147483647 words of 1 value or more");
  ExpectCorrupt("1 0\na\n", "got 1 words of 0");
}

TEST_F(VectorsFileTest, TheFirstWrongLineIsNamedWithAnyThreads) {
  std::string text = "3000 2\n";
  for (int i = 2; i <= 3001; ++i) {
    text += i % 1000 == 0 ? "word 1\n" : std::to_string(i) + " 1 2\n";
  }
  EXPECT_THAT(Parse(text, 3), StatusIs(StatusCode::kDataLoss,
                                       HasSubstr("given: line 1000: want a")));
}

TEST_F(VectorsFileTest, AWrongBinaryNamesTheRow) {
  ExpectCorrupt(kBinary.substr(0, 50),
                "row 3 of 3: want a word, a space and "
                "12 bytes, got the end of the file");
  ExpectCorrupt(kBinary + "rest", "behind 3 rows, got 4 bytes more");
  std::string lies = kBinary;
  lies[0] = '9';
  ExpectCorrupt(lies, "row 4 of 9: want a word");
}

TEST_F(VectorsFileTest, AHugeHeaderAsksForNoMemory) {
  const std::string rows(100, '\1');
  ExpectCorrupt("999999999999 300\na " + rows, "row 1 of 999999999999");
  ExpectCorrupt("3 99999999999999\na " + rows, "row 1 of 3: want a word");
  ExpectCorrupt("1 99999999999999\na 1\n", "got 3 bytes behind it");
}

TEST_F(VectorsFileTest, SafetensorsWantTheirWords) {
  const Table table{{"a", "b"}, {}, 1, 1, {1, 2}};
  const std::string path = Path("v.safetensors");
  WriteTensors(path, table);
  Write("v.vocab", "a 1\n");
  EXPECT_THAT(ReadVectors(path, 1),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("v.vocab: want the words of 2 vectors, a line "
                                 "each, got 1")));
  Write("v.vocab", "a 1\nb\n");
  EXPECT_THAT(ReadVectors(path, 1),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("v.vocab: line 2: want \"word count\"")));
  std::filesystem::remove(Path("v.vocab"));
  EXPECT_THAT(ReadVectors(path, 1),
              StatusIs(StatusCode::kNotFound, HasSubstr("v.vocab: cannot")));
}

TEST_F(VectorsFileTest, AFolderIsReadByTheFileInIt) {
  EXPECT_THAT(ReadVectors(folder_.path(), 1),
              StatusIs(StatusCode::kNotFound,
                       HasSubstr("want vectors.bin, vectors.txt or "
                                 "vectors.safetensors, got none")));
  Write(kVectorsTextFile, kText);
  ASSERT_OK_AND_ASSIGN(const WordVectors vectors,
                       ReadVectors(folder_.path(), 1));
  ExpectGolden(vectors);
  Write(kVectorsFile, kBinary);
  EXPECT_THAT(ReadVectors(folder_.path(), 1),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("want one file of vectors, got ")));
}

TEST_F(VectorsFileTest, AMissingFileAndAPipeAreNotFound) {
  EXPECT_THAT(ReadVectors(Path("none"), 1),
              StatusIs(StatusCode::kNotFound, HasSubstr("none: cannot read")));
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(ReadVectors(Path("pipe"), 1),
              StatusIs(StatusCode::kNotFound,
                       HasSubstr("pipe: want a regular file, got a pipe")));
}

TEST_F(VectorsFileTest, AFailedWriteLeavesTheOldFile) {
  const Table table = AnyTable(10, 2, 2);
  EXPECT_THAT(WriteVectorsBinary(Path("none/v.bin"), table.View()),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("cannot write " + Path("none/v.bin"))));
  std::filesystem::create_directory(Path("v.bin"));
  EXPECT_THAT(WriteVectorsBinary(Path("v.bin"), table.View()),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("v.bin")));
  EXPECT_EQ(
      std::distance(std::filesystem::directory_iterator(folder_.path()), {}),
      1);
}

}  // namespace
}  // namespace onestep
