// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/random_rows.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/huge_pages.h"
#include "trainer/data/random.h"

namespace onestep {

Dataset RandomRows(int64_t rows, int64_t features, int64_t classes,
                   uint64_t seed, double density) {
  Dataset data;
  data.rows = rows;
  data.features = features;
  data.image_rows = 1;
  data.image_cols = features;
  data.classes = static_cast<int>(classes);
  data.source = absl::StrCat(rows, " random rows");
  Random random(seed);
  data.images.resize(rows * features);
  PreferHugePages(data.images.data(), rows * features);
  const auto inked = static_cast<uint64_t>(density * 0x1p32);
  for (uint8_t& pixel : data.images) {
    const uint64_t bits = random.Next();  // its halves are independent
    const bool ink = bits >> 32 < inked;
    pixel = ink ? static_cast<uint8_t>(1 + (bits & 0xffffffff) % 255) : 0;
  }
  data.labels.resize(rows);
  for (int32_t& label : data.labels) {
    label = static_cast<int32_t>(random.Below(classes));
  }
  return data;
}

}  // namespace onestep
