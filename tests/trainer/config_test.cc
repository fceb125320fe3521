// SPDX-License-Identifier: Apache-2.0
#include "trainer/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "nlohmann/json.hpp"

namespace onestep {
namespace {

using testing::HasSubstr;
using testing::Not;

Config SomeConfig() {
  Config config;
  config.data = "folder";
  config.model.widths = {784, 128, 10};
  return config;
}

TEST(ConfigTest, JsonHasAKeyPerFlag) {
  const nlohmann::ordered_json json = ConfigToJson(SomeConfig());
  std::set<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.insert(key);
  EXPECT_THAT(keys, testing::UnorderedElementsAre(
                        "data", "validation", "model", "activation", "loss",
                        "init", "optimizer", "weight_decay", "lr",
                        "lr_schedule", "warmup", "batch", "epochs", "patience",
                        "seed", "shuffle_seed", "device", "fuse", "dispatch",
                        "kernels", "threads", "input", "disable_pass"));
  EXPECT_EQ(json["model"], "784-128-10");
  EXPECT_EQ(json["fuse"], "on");
  EXPECT_EQ(json["lr"], 0.1);
}

TEST(ConfigTest, MomentumIsShownOnlyWhereItIsUsed) {
  Config config = SomeConfig();
  EXPECT_FALSE(ConfigToJson(config).contains("momentum"));
  config.optimizer.kind = OptimizerKind::kMomentum;
  config.optimizer.nesterov = true;
  EXPECT_EQ(ConfigToJson(config)["momentum"], 0.9);
  EXPECT_EQ(ConfigToJson(config)["nesterov"], true);
}

TEST(ConfigTest, TheTableHasALinePerFlagWithAValue) {
  Config config = SomeConfig();
  config.compile.disabled_passes = {"cse", "dce"};
  const std::string table = ConfigTable(config);
  EXPECT_THAT(table, HasSubstr("  model         784-128-10\n"));
  EXPECT_THAT(table, HasSubstr("  seed          1\n"));
  EXPECT_THAT(table, HasSubstr("  disable_pass  cse,dce\n"));
  EXPECT_THAT(ConfigTable(SomeConfig()), Not(HasSubstr("disable_pass")));
}

TEST(ConfigTest, EveryChoiceHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const auto& named : Names<OptimizerKind>()) {
    EXPECT_EQ(NameOf(named.value), std::string(named.name));
    EXPECT_TRUE(names.insert(named.name).second) << named.name;
  }
  EXPECT_EQ(names.size(), 4u);
}

}  // namespace
}  // namespace onestep
