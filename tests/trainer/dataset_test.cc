// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "trainer/data/split.h"
#include "trainer/data/synthetic.h"

namespace onestep {
namespace {

namespace fs = std::filesystem;

using absl::StatusCode;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

// Three images of 2 x 1.
const std::string kImages(
    "\0\0\x08\x03\0\0\0\x03\0\0\0\x02\0\0\0\x01"
    "abcdef",
    22);
const std::string kLabels("\0\0\x08\x01\0\0\0\x03\x04\x02\x09", 11);

// A folder of its own, which is also the working directory, and no
// $ONESTEP_DATA.
class DatasetTest : public testing::Test {
 protected:
  DatasetTest() : old_dir_(fs::current_path()) {
    fs::current_path(dir_);
    unsetenv("ONESTEP_DATA");
  }
  ~DatasetTest() override {
    unsetenv("ONESTEP_DATA");
    fs::current_path(old_dir_);
  }

  void Write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(dir_ + "/" + name).parent_path());
    std::ofstream(dir_ + "/" + name, std::ios::binary) << bytes;
  }

  const TempFolder folder_;
  const std::string dir_ = folder_.path();

 private:
  fs::path old_dir_;
};

TEST_F(DatasetTest, LoadsImagesWithTheirLabels) {
  Write("train-images-idx3-ubyte", kImages);
  Write("train-labels-idx1-ubyte", kLabels);
  ASSERT_OK_AND_ASSIGN(const Dataset data,
                       LoadIdxDirectory(dir_, Subset::kTrain, 10));
  EXPECT_THAT(data.images, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  EXPECT_THAT(data.labels, ElementsAre(4, 2, 9));
  EXPECT_EQ(data.rows, 3);
  EXPECT_EQ(data.features, 2);
  EXPECT_EQ(data.image_rows, 2);
  EXPECT_EQ(data.image_cols, 1);
  EXPECT_EQ(data.classes, 10);
  EXPECT_EQ(data.source, dir_ + "/train-images-idx3-ubyte");
}

TEST_F(DatasetTest, FindsEveryNameOfTheTrainSubset) {
  for (const std::string separator : {"-", "."}) {
    for (const std::string suffix : {"", ".gz"}) {
      const std::string images = "train-images" + separator + "idx3-ubyte";
      const std::string labels = "train-labels" + separator + "idx1-ubyte";
      Write(images + suffix, kImages);
      Write(labels + suffix, kLabels);
      ASSERT_OK_AND_ASSIGN(const Dataset data,
                           LoadIdxDirectory(dir_, Subset::kTrain, 10));
      EXPECT_THAT(data.source, EndsWith("/" + images + suffix));
      fs::remove(images + suffix);
      fs::remove(labels + suffix);
    }
  }
}

TEST_F(DatasetTest, FindsTheTestSubsetByBothOfItsNames) {
  Write("test-images.idx3-ubyte", kImages);
  Write("test-labels-idx1-ubyte", kLabels);
  ASSERT_OK_AND_ASSIGN(const Dataset by_test,
                       LoadIdxDirectory(dir_, Subset::kTest, 10));
  EXPECT_THAT(by_test.source, EndsWith("/test-images.idx3-ubyte"));

  Write("t10k-images-idx3-ubyte", kImages);
  ASSERT_OK_AND_ASSIGN(const Dataset by_t10k,
                       LoadIdxDirectory(dir_, Subset::kTest, 10));
  EXPECT_THAT(by_t10k.source, EndsWith("/t10k-images-idx3-ubyte"));
}

TEST_F(DatasetTest, UnzipsFilesNamedGz) {
  const gzFile file = gzopen("train-images-idx3-ubyte.gz", "wb");
  gzwrite(file, kImages.data(), kImages.size());
  ASSERT_EQ(gzclose(file), Z_OK);
  Write("train-labels-idx1-ubyte", kLabels);
  ASSERT_OK_AND_ASSIGN(const Dataset data,
                       LoadIdxDirectory(dir_, Subset::kTrain, 10));
  EXPECT_EQ(data.images.back(), 'f');
}

TEST_F(DatasetTest, NamesWhatItLookedFor) {
  EXPECT_THAT(
      LoadIdxDirectory(dir_, Subset::kTrain, 10),
      StatusIs(StatusCode::kNotFound,
               HasSubstr(dir_ + ": want train-images-idx3-ubyte or "
                                "train-images.idx3-ubyte (plain or .gz)")));
  EXPECT_THAT(LoadIdxDirectory(dir_, Subset::kTest, 10),
              StatusIs(StatusCode::kNotFound,
                       AllOf(HasSubstr("t10k-images-idx3-ubyte or "),
                             HasSubstr("test-images.idx3-ubyte"))));
  Write("train-images-idx3-ubyte", kImages);
  EXPECT_THAT(LoadIdxDirectory(dir_, Subset::kTrain, 10),
              StatusIs(StatusCode::kNotFound,
                       HasSubstr("want train-labels-idx1-ubyte or ")));
}

TEST_F(DatasetTest, PassesOnTheErrorOfACorruptFile) {
  Write("train-images-idx3-ubyte", kImages);
  Write("train-labels-idx1-ubyte", kImages);
  EXPECT_THAT(LoadIdxDirectory(dir_, Subset::kTrain, 10),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("/train-labels-idx1-ubyte: want IDX labels")));
}

TEST_F(DatasetTest, RefusesAnotherNumberOfLabelsThanImages) {
  Write("train-images-idx3-ubyte", kImages);
  Write("train-labels-idx1-ubyte",
        std::string("\0\0\x08\x01\0\0\0\x02\x04\x02", 10));
  EXPECT_THAT(LoadIdxDirectory(dir_, Subset::kTrain, 10),
              StatusIs(StatusCode::kDataLoss,
                       AllOf(HasSubstr("/train-labels-idx1-ubyte: want 3 "
                                       "labels, one for each image of "),
                             EndsWith("/train-images-idx3-ubyte, got 2"))));
}

TEST_F(DatasetTest, RefusesALabelThatIsNoClass) {
  Write("train-images-idx3-ubyte", kImages);
  Write("train-labels-idx1-ubyte", kLabels);
  EXPECT_THAT(LoadIdxDirectory(dir_, Subset::kTrain, 9),
              StatusIs(StatusCode::kDataLoss,
                       EndsWith("/train-labels-idx1-ubyte: row 2: want a "
                                "label in 0..8, got 9")));
}

TEST_F(DatasetTest, ResolvesToTheFlagFirst) {
  fs::create_directory("given");
  setenv("ONESTEP_DATA", "/nonexistent", 1);
  EXPECT_EQ(*ResolveDataDirectory("given"), "given");
}

TEST_F(DatasetTest, ResolvesToTheVariableSecond) {
  fs::create_directory("given");
  Write("data/train-images-idx3-ubyte", kImages);
  setenv("ONESTEP_DATA", "given", 1);
  EXPECT_EQ(*ResolveDataDirectory(""), "given");
}

TEST_F(DatasetTest, ResolvesToTheDataFolderThird) {
  Write("data/train-images.idx3-ubyte.gz", kImages);
  EXPECT_EQ(*ResolveDataDirectory(""), "data");
  setenv("ONESTEP_DATA", "", 1);
  EXPECT_EQ(*ResolveDataDirectory(""), "data");
}

TEST_F(DatasetTest, ResolvesToDebiansPackageOrNothingLast) {
  Write("data/notes.txt", "no images in here");
  EXPECT_EQ(*ResolveDataDirectory(""),
            fs::exists(kFashionMnistDirectory) ? kFashionMnistDirectory : "");
}

TEST_F(DatasetTest, NeverSkipsADirectoryThatWasGiven) {
  Write("data/train-images-idx3-ubyte", kImages);
  EXPECT_THAT(ResolveDataDirectory("none"),
              StatusIs(StatusCode::kNotFound,
                       "--data: want a directory, got 'none', which is "
                       "missing"));
  setenv("ONESTEP_DATA", "data/train-images-idx3-ubyte", 1);
  EXPECT_THAT(ResolveDataDirectory(""),
              StatusIs(StatusCode::kNotFound,
                       "$ONESTEP_DATA: want a directory, got "
                       "'data/train-images-idx3-ubyte', which is not one"));
}

TEST(SyntheticDigitsTest, HasTheDocumentedShape) {
  for (const Subset subset : {Subset::kTrain, Subset::kTest}) {
    const Dataset data = SyntheticDigits(subset, 1);
    EXPECT_EQ(data.rows, subset == Subset::kTrain ? 12000 : 2000);
    EXPECT_EQ(data.features, 784);
    EXPECT_EQ(data.image_rows, 28);
    EXPECT_EQ(data.image_cols, 28);
    EXPECT_EQ(data.classes, 10);
    EXPECT_EQ(static_cast<int64_t>(data.images.size()), data.rows * 784);
    EXPECT_EQ(static_cast<int64_t>(data.labels.size()), data.rows);
    for (int64_t i = 0; i < data.rows; ++i) ASSERT_EQ(data.labels[i], i % 10);
  }
}

TEST(SyntheticDigitsTest, GivesTheSameBytesOnEveryMachine) {
  const Dataset data = SyntheticDigits(Subset::kTrain, 1);
  EXPECT_EQ(crc32(0, data.images.data(), data.images.size()), 0xbb7badadu);
}

TEST(SyntheticDigitsTest, DiffersBetweenSeedsAndSubsets) {
  const Dataset data = SyntheticDigits(Subset::kTest, 1);
  EXPECT_NE(data.images, SyntheticDigits(Subset::kTest, 2).images);
  const Dataset train = SyntheticDigits(Subset::kTrain, 1);
  EXPECT_FALSE(
      std::equal(data.images.begin(), data.images.end(), train.images.begin()));
}

TEST(SyntheticDigitsTest, IsAboutAsSparseAsMnist) {
  const Dataset data = SyntheticDigits(Subset::kTrain, 1);
  const auto zeros = std::count(data.images.begin(), data.images.end(), 0);
  EXPECT_NEAR(static_cast<double>(zeros) / data.images.size(), 0.81, 0.02);
}

// The mean picture of a class already tells more than half of the test rows,
// where chance tells a tenth, and leaves a model something to learn.
TEST(SyntheticDigitsTest, CanBeToldApartButNotByTheMeanPicture) {
  const Dataset train = SyntheticDigits(Subset::kTrain, 1);
  std::vector<float> means(10 * 784);
  for (int64_t i = 0; i < train.rows * 784; ++i) {
    means[train.labels[i / 784] * 784 + i % 784] += train.images[i] / 1200.0f;
  }
  const Dataset test = SyntheticDigits(Subset::kTest, 1);
  int correct = 0;
  for (int64_t row = 0; row < test.rows; ++row) {
    int best = 0;
    float best_distance = std::numeric_limits<float>::max();
    for (int label = 0; label < 10; ++label) {
      float distance = 0;
      for (int i = 0; i < 784; ++i) {
        const float d = test.images[row * 784 + i] - means[label * 784 + i];
        distance += d * d;
      }
      if (distance < best_distance) {
        best = label;
        best_distance = distance;
      }
    }
    correct += best == test.labels[row];
  }
  EXPECT_GT(correct, test.rows / 2);
  EXPECT_LT(correct, test.rows * 9 / 10);
}

TEST(SplitTest, KeepsTheLastRowsForValidation) {
  ASSERT_OK_AND_ASSIGN(const Split split, SplitRows(60000, 0.2));
  EXPECT_EQ(split.train_rows, 48000);
  EXPECT_EQ(split.validation_rows, 12000);
}

TEST(SplitTest, RoundsToTheNearestRow) {
  EXPECT_EQ(SplitRows(10, 0.24)->validation_rows, 2);
  EXPECT_EQ(SplitRows(10, 0.26)->validation_rows, 3);
  EXPECT_EQ(SplitRows(7, 0)->validation_rows, 0);
}

TEST(SplitTest, RefusesAFractionOutOfRange) {
  for (const double fraction :
       {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(SplitRows(10, fraction),
                StatusIs(StatusCode::kInvalidArgument,
                         HasSubstr("want it in [0, 1), got ")));
  }
}

TEST(SplitTest, RefusesToLeaveNoRowToTrainOn) {
  EXPECT_THAT(SplitRows(2, 0.9),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("want a row left to train on, got 0.9 of 2")));
  EXPECT_THAT(SplitRows(0, 0),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("of 0 rows")));
}

TEST(EpochOrderTest, IsAPermutationFixedBySeedAndEpoch) {
  const std::vector<int32_t> order = EpochOrder(100, 7, 3);
  EXPECT_EQ(order, EpochOrder(100, 7, 3));
  EXPECT_NE(order, EpochOrder(100, 7, 4));
  EXPECT_NE(order, EpochOrder(100, 8, 3));
  std::vector<int32_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < 100; ++i) ASSERT_EQ(sorted[i], i);
}

}  // namespace
}  // namespace onestep
