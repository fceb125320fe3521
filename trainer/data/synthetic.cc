// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/synthetic.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "trainer/data/random.h"

namespace onestep {
namespace {

constexpr int64_t kSide = 28;
constexpr int kClasses = 10;
constexpr int kGlyphRows = 7;
constexpr int kGlyphCols = 5;

constexpr const char* kGlyphs[kClasses] = {
    " ### #   ##   ##   ##   ##   # ### ",  //
    "  #   ##  # #    #    #    #  #####",  //
    " ### #   #    #  ##  #   #    #####",  //
    " ### #   #    #  ##     ##   # ### ",  //
    "   #   ##  # # #  # #####   #    # ",  //
    "######    #### #   #    ##   # ### ",  //
    "  ##  #   #    #### #   ##   # ### ",  //
    "#####    #   #   #   #    #    #   ",  //
    " ### #   ##   # ### #   ##   # ### ",  //
    " ### #   ##   # ####    #   #  ##  ",  //
};

double Ink(int digit, int row, int col) {
  const bool inside =
      row >= 0 && row < kGlyphRows && col >= 0 && col < kGlyphCols;
  return inside && kGlyphs[digit][row * kGlyphCols + col] == '#' ? 1 : 0;
}

// The ink of a glyph at a point between its cells, bilinear.
double InkAt(int digit, double y, double x) {
  const int row = static_cast<int>(std::floor(y));
  const int col = static_cast<int>(std::floor(x));
  if (row < -1 || row >= kGlyphRows || col < -1 || col >= kGlyphCols) return 0;
  const double dy = y - row, dx = x - col;
  return (1 - dy) *
             ((1 - dx) * Ink(digit, row, col) + dx * Ink(digit, row, col + 1)) +
         dy * ((1 - dx) * Ink(digit, row + 1, col) +
               dx * Ink(digit, row + 1, col + 1));
}

void DrawDigit(int digit, Random& random, uint8_t* image) {
  // From a pixel to a point of the glyph, both measured from their centres.
  const double center_y = (kSide - 1) / 2.0 + random.Uniform(-3, 3);
  const double center_x = (kSide - 1) / 2.0 + random.Uniform(-3, 3);
  const double cells_per_pixel_y = 1 / random.Uniform(2.1, 3.3);
  const double cells_per_pixel_x = 1 / random.Uniform(2.1, 3.6);
  // The turn by its half angle's tangent: no library's sin and cos to differ.
  const double turn = random.Uniform(-0.15, 0.15);
  const double cos = (1 - turn * turn) / (1 + turn * turn);
  const double sin = 2 * turn / (1 + turn * turn);
  const double slant = random.Uniform(-0.35, 0.35);
  // Ink below the threshold is paper: a low one draws thick strokes, and a
  // low contrast soft edges.
  const double threshold = random.Uniform(0.2, 0.6);
  const double contrast = random.Uniform(1.5, 5.0);
  const double brightness = random.Uniform(150, 255);
  for (int64_t row = 0; row < kSide; ++row) {
    for (int64_t col = 0; col < kSide; ++col) {
      const double y = row - center_y, x = col - center_x;
      const double turned_y = cos * y - sin * x;
      const double turned_x = sin * y + cos * x + slant * turned_y;
      const double ink =
          InkAt(digit, turned_y * cells_per_pixel_y + (kGlyphRows - 1) / 2.0,
                turned_x * cells_per_pixel_x + (kGlyphCols - 1) / 2.0);
      const double shade =
          std::clamp((ink - threshold) * contrast, 0.0, 1.0) * brightness;
      image[row * kSide + col] = static_cast<uint8_t>(shade);
    }
  }
}

// Specks anywhere, and one bar of paper or ink over the picture.
void Soil(Random& random, uint8_t* image) {
  for (uint64_t specks = random.Below(24); specks > 0; --specks) {
    image[random.Below(kSide * kSide)] = random.Below(256);
  }
  const uint8_t shade = random.Below(2) == 0 ? 0 : 128 + random.Below(128);
  const uint64_t bar = random.Below(kSide);
  const bool upright = random.Below(2) == 0;
  const uint64_t begin = random.Below(kSide);
  const uint64_t end = std::min<uint64_t>(kSide, begin + random.Below(16));
  for (uint64_t i = begin; i < end; ++i) {
    image[upright ? i * kSide + bar : bar * kSide + i] = shade;
  }
}

}  // namespace

Dataset SyntheticDigits(Subset subset, uint64_t seed) {
  const bool train = subset == Subset::kTrain;
  const uint64_t stream = uint64_t{2} << 32 | (train ? 0 : 1);
  Random random(seed, stream);

  Dataset data;
  data.rows = train ? kSyntheticTrainRows : kSyntheticTestRows;
  data.features = kSide * kSide;
  data.image_rows = kSide;
  data.image_cols = kSide;
  data.classes = kClasses;
  data.source = absl::StrCat("built-in digits, seed ", seed);
  data.images.resize(data.rows * data.features);
  data.labels.resize(data.rows);
  for (int64_t row = 0; row < data.rows; ++row) {
    const int digit = row % kClasses;
    uint8_t* image = data.images.data() + row * data.features;
    DrawDigit(digit, random, image);
    Soil(random, image);
    data.labels[row] = digit;
  }
  return data;
}

}  // namespace onestep
