// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/memory_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/status_matchers.h"

namespace onestep {
namespace {

const ModelSpec kModel = {{64, 32, 10}, Activation::kRelu, Loss::kSoftmaxXent};
constexpr int64_t kWeights = 4 * (64 * 32 + 32 + 32 * 10 + 10);
constexpr int64_t kRows = 100, kTrainRows = 80, kBatch = 8;

struct Case {
  Compiled compiled;
  MemoryUse memory;

  int64_t Of(const char* kind) const {
    for (const auto& [name, bytes] : memory.kinds) {
      if (name == kind) return bytes;
    }
    ADD_FAILURE() << kind;
    return -1;
  }
  // What the first three kinds hold beside the weights and state.
  int64_t Arena() const { return compiled.executable->arena_bytes(); }
};

Case Make(OptimizerKind kind, const CompileOptions& options) {
  OptimizerSpec optimizer;
  optimizer.kind = kind;
  Case made;
  auto graph = BuildTrainStep(kModel, optimizer, kRows, kBatch);
  EXPECT_OK(graph);
  auto compiled = Compile(*std::move(graph), options);
  EXPECT_OK(compiled);
  made.compiled = *std::move(compiled);
  auto memory = EstimateMemory(kModel, optimizer, made.compiled, kRows,
                               kTrainRows, kBatch);
  EXPECT_OK(memory);
  made.memory = *std::move(memory);
  return made;
}

TEST(MemoryUseTest, AFusedSgdStepHoldsWeightsActivationsAndData) {
  const Case fused = Make(OptimizerKind::kSgd, {});
  EXPECT_EQ(fused.Of("weights"), kWeights);
  EXPECT_EQ(fused.Of("gradients"), 0);
  EXPECT_EQ(fused.Of("optimizer state"), 0);
  // Bytes and label of a row, the order, and 4 scalars of each of 10 steps.
  EXPECT_EQ(fused.Of("data"), kRows * (64 + 4) + kTrainRows * 4 + 10 * 16);
  EXPECT_EQ(fused.Of("activations") + fused.Of("other") - kWeights,
            fused.Arena());
  EXPECT_EQ(fused.memory.arena_bytes, fused.Arena());
}

TEST(MemoryUseTest, WithoutFusionTheGradientsAreHeld) {
  CompileOptions options;
  options.fuse = false;
  const Case unfused = Make(OptimizerKind::kSgd, options);
  // Of w1, which shares its bytes with nothing that is as large; what more of
  // them does is for the plan to know.
  EXPECT_GE(unfused.Of("gradients"), 64 * 32 * 4 / 2);
  EXPECT_LE(unfused.Of("gradients"), kWeights + 4 * 256);
  EXPECT_EQ(unfused.Of("gradients") + unfused.Of("activations") +
                unfused.Of("other") - kWeights,
            unfused.Arena());
}

TEST(MemoryUseTest, AdamHasTwoFloatsForEachWeight) {
  const Case adam = Make(OptimizerKind::kAdam, {});
  EXPECT_EQ(adam.Of("optimizer state"), 2 * kWeights);
  EXPECT_EQ(Make(OptimizerKind::kMomentum, {}).Of("optimizer state"), kWeights);
}

TEST(MemoryUseTest, WorkersHoldTheirPartsOfTheWeightsToo) {
  CompileOptions options;
  options.dispatch = Dispatch::kSingle;
  const Case one = Make(OptimizerKind::kAdam, options);
  EXPECT_EQ(one.Of("weights"), 2 * kWeights);
  EXPECT_EQ(one.Of("optimizer state"), 4 * kWeights);
  options.threads = 2;
  const Case two = Make(OptimizerKind::kAdam, options);
  EXPECT_GE(two.Of("weights"), 2 * kWeights);
  EXPECT_LE(two.Of("weights"), 3 * kWeights);  // both hold all, at most
  // Scratch and exchanges.
  EXPECT_GE(two.Of("other"), 3 * kWeights);
  EXPECT_EQ(two.Of("gradients") + two.Of("activations") + two.Of("other") -
                3 * kWeights,
            two.Arena());
}

TEST(MemoryUseTest, JsonHasEveryKindAndTheirSum) {
  const Case fused = Make(OptimizerKind::kSgd, {});
  const auto json = ToJson(fused.memory);
  EXPECT_EQ(json["kinds"].size(), 6);
  EXPECT_EQ(json["kinds"][0]["kind"], "weights");
  int64_t sum = 0;
  for (const auto& kind : json["kinds"]) sum += kind["bytes"].get<int64_t>();
  EXPECT_EQ(json["total_bytes"], sum);
  EXPECT_EQ(json["arena_bytes"], fused.Arena());
}

TEST(MemoryUseTest, SaysWhatIsAvailableAndWhenThatIsTooLittle) {
  EXPECT_GT(Make(OptimizerKind::kSgd, {}).memory.available_bytes, 0);
  MemoryUse memory;
  memory.kinds = {{"data", 3 << 20}};
  EXPECT_THAT(ToText(memory),
              testing::EndsWith("total               3.0 MiB\n"));
  memory.available_bytes = 3 << 20;
  EXPECT_THAT(ToText(memory), testing::EndsWith("; available here 3.0 MiB\n"));
  memory.available_bytes = 2 << 20;
  EXPECT_THAT(ToText(memory), testing::HasSubstr("2.0 MiB\nnote: "));
  EXPECT_EQ(ToJson(memory)["available_bytes"], 2 << 20);
}

TEST(BytesTextTest, TakesTheUnitThatLeavesAFewDigits) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(int64_t{3} << 30), "3.0 GiB");
}

}  // namespace
}  // namespace onestep
