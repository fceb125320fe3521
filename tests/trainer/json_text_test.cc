// SPDX-License-Identifier: Apache-2.0
#include "trainer/json_text.h"

#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace onestep {
namespace {

TEST(JsonTextTest, WhatIsNoUtf8IsReplaced) {
  const nlohmann::ordered_json json = {{"data", "/d\xff"}};
  EXPECT_EQ(JsonText(json), "{\"data\":\"/d\uFFFD\"}");
  EXPECT_EQ(JsonText(json, 2), "{\n  \"data\": \"/d\uFFFD\"\n}");
}

}  // namespace
}  // namespace onestep
