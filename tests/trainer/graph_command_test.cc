// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/status_matchers.h"
#include "trainer/commands/commands.h"
#include "trainer/graphviz.h"

namespace onestep {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Config Mnist() {
  Config config;
  config.verb = Verb::kGraph;
  config.model.widths = {784, 128, 10};
  return config;
}

std::string Graph(const Config& config) {
  Console console;
  testing::internal::CaptureStdout();
  EXPECT_OK(RunGraph(config, console));
  console.Flush();
  return testing::internal::GetCapturedStdout();
}

TEST(GraphCommandTest, AboutTwentyOpsBecomeAtMostEightSteps) {
  const std::string text = Graph(Mnist());
  int ops = 0, steps = 0;
  const size_t last = text.rfind("\nunfused: ");
  ASSERT_NE(last, std::string::npos);
  ASSERT_EQ(std::sscanf(text.c_str() + last,
                        "\nunfused: %d ops -> fused: %d steps", &ops, &steps),
            2);
  EXPECT_GE(ops, 18);
  EXPECT_LE(ops, 26);
  EXPECT_LE(steps, 8);
  EXPECT_GE(steps, 1);
}

TEST(GraphCommandTest, ShowsTheGraphBeforeAndAfterAPass) {
  const std::string text = Graph(Mnist());
  EXPECT_THAT(text, HasSubstr("graph before the passes\ngraph {\n"));
  EXPECT_THAT(text, HasSubstr("add_bias(%"));           // before
  EXPECT_THAT(text, HasSubstr("activation=relu} : "));  // after
  EXPECT_THAT(text, HasSubstr("pass fuse-bias-activation"));
  EXPECT_THAT(text, HasSubstr("nodes  changed"));
  EXPECT_THAT(text, HasSubstr("nodes  not changed"));
}

TEST(GraphCommandTest, ShowsPlacementsAndExchangesOfATeam) {
  Config config = Mnist();
  config.compile.dispatch = Dispatch::kSingle;
  config.compile.threads = 2;
  std::string text = Graph(config);
  EXPECT_THAT(text, HasSubstr("placement over 2 workers: 1 exchange per step"));
  EXPECT_THAT(text, HasSubstr("f32[784,64] of 0"));
  EXPECT_THAT(text, HasSubstr("program of worker 0\ngraph {\n"));
  config.input = InputMode::kSparse;
  text = Graph(config);
  EXPECT_THAT(text, HasSubstr("sparse_outer"));
}

TEST(GraphCommandTest, ShowsTheStepOfManyModels) {
  Config config = Mnist();
  config.compile.vectorize.models = 5;
  config.compile.dispatch = Dispatch::kSingle;
  config.compile.threads = 2;
  const std::string text = Graph(config);
  EXPECT_THAT(text, StartsWith("onestep: 5 models of 784-128-10, "));
  EXPECT_THAT(text, HasSubstr("pass vectorize"));
  EXPECT_THAT(text, HasSubstr("%w1 = param 5xf32[784,128]\n"));
  EXPECT_THAT(text, HasSubstr("placement over 2 workers: 0 exchanges"));
  EXPECT_THAT(text, HasSubstr("%w1 = param 2xf32[784,128]\n"));  // worker 0
  EXPECT_THAT(text, HasSubstr("unfused: 24 ops -> fused: 8 steps"));
}

TEST(GraphCommandTest, ShowsPlanAndStepsWithWhatTheyWereFusedFrom) {
  const std::string text = Graph(Mnist());
  EXPECT_THAT(text, HasSubstr("\nmemory plan\n"));
  EXPECT_THAT(text, HasSubstr(" #  phase "));
  EXPECT_THAT(text, HasSubstr("f32[784,128]"));
  EXPECT_THAT(text, HasSubstr("    from matmul + add_bias + relu\n"));
  EXPECT_THAT(text, HasSubstr("  yes\n"));  // in place
  EXPECT_THAT(text, HasSubstr("  no\n"));
}

TEST(GraphCommandTest, WithoutFusionEveryOpIsAStep) {
  Config config = Mnist();
  config.compile.fuse = false;
  const std::string text = Graph(config);
  EXPECT_THAT(text, HasSubstr("pass fuse-update           not run\n"));
  EXPECT_THAT(text, HasSubstr("ops -> not fused: "));
  EXPECT_THAT(text, Not(HasSubstr("    from ")));
  EXPECT_THAT(text, HasSubstr("onednn "));  // as oneDNN names it
}

TEST(GraphCommandTest, MomentumIsRefusedWithTheReason) {
  Config config = Mnist();
  config.optimizer.kind = OptimizerKind::kMomentum;
  EXPECT_THAT(Graph(config), HasSubstr("  refused: "));
}

TEST(GraphCommandTest, WeightDecayIsRefusedWithTheReason) {
  Config config = Mnist();
  config.optimizer.weight_decay = 0.01f;
  EXPECT_THAT(Graph(config),
              AllOf(HasSubstr("  refused: "), HasSubstr("weight decay")));
}

TEST(GraphCommandTest, GeluIsRefusedWithTheReason) {
  Config config = Mnist();
  config.model.activation = Activation::kGelu;
  EXPECT_THAT(Graph(config),
              AllOf(HasSubstr("  refused: "), HasSubstr("gelu")));
}

TEST(GraphCommandTest, AStepOfWord2vecBecomesOneOp) {
  Config config;
  config.verb = Verb::kGraph;
  config.window_model = WindowModel::kSkipGram;
  const std::string text = Graph(config);
  EXPECT_THAT(text, StartsWith("onestep: word2vec skipgram, 40000 words of "
                               "100, 10 contexts, 6 outputs, fuse on"));
  EXPECT_THAT(text, HasSubstr("%in = param f32[40000,112]\n"));
  EXPECT_THAT(text, HasSubstr("sigmoid_bce_grad(%"));  // before
  EXPECT_THAT(text, HasSubstr("= sgns_window(%in, %out, "));
  EXPECT_THAT(text, HasSubstr("unfused: 11 ops -> fused: 1 step\n"));
  config.window_model = WindowModel::kCbowHs;
  config.compile.disabled_passes = {"fuse-sparse-window"};
  const std::string sparse = Graph(config);
  EXPECT_THAT(sparse, HasSubstr("%out = param f32[39999,112]\n"));
  EXPECT_THAT(sparse, HasSubstr("= scatter_add(%in, %contexts, "));
  EXPECT_THAT(sparse, Not(HasSubstr("cbow_window")));
}

TEST(GraphCommandTest, DotIsTheFinalGraph) {
  Config config = Mnist();
  config.graph_format = GraphFormat::kDot;
  EXPECT_THAT(Graph(config),
              AllOf(StartsWith("digraph onestep {"),
                    HasSubstr("matmul + add_bias + relu"), EndsWith("}\n")));
}

TEST(GraphvizTest, NamesTheProgramThatIsMissing) {
  EXPECT_THAT(DotToSvg("digraph {}", "no-such-dot"),
              StatusIs(absl::StatusCode::kUnavailable,
                       "no-such-dot: not found; install graphviz"));
}

TEST(GraphvizTest, ReportsAProgramThatFails) {
  EXPECT_THAT(DotToSvg("digraph {}", "false"),
              StatusIs(absl::StatusCode::kInternal, "false: exit code 1"));
}

TEST(GraphvizTest, DrawsWhatIsLargerThanAPipe) {
  std::string dot = "digraph {\n";
  for (int i = 0; i < 8000; ++i) dot += "// a comment of some length\n";
  const absl::StatusOr<std::string> svg = DotToSvg(dot + "a -> b }\n");
  if (absl::IsUnavailable(svg.status())) GTEST_SKIP() << svg.status();
  ASSERT_OK(svg);
  EXPECT_THAT(*svg, AllOf(HasSubstr("<svg"), HasSubstr("</svg>")));
}

}  // namespace
}  // namespace onestep
