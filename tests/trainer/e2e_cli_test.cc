// SPDX-License-Identifier: Apache-2.0
// The program from outside: exit codes, streams, files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/trainer/cli_fixture.h"
#include "trainer/data/dataset.h"

namespace onestep {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Gt;
using testing::HasSubstr;
using testing::Lt;
using testing::StartsWith;

class E2eCliTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    WriteData("data", 300, 100);
  }

  // A failure is one line on stderr that begins with the program's name, and
  // nothing has been trained.
  void ExpectFailure(const std::vector<std::string>& args, int code,
                     const std::string& message) {
    const CliResult result = Run(args);
    EXPECT_EQ(result.code, code) << testing::PrintToString(args);
    EXPECT_THAT(result.err, AllOf(StartsWith("trainer: "), HasSubstr(message)));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
        << result.err;
    EXPECT_THAT(result.out, testing::Not(HasSubstr("test accuracy")));
  }

  std::string Truncated(const std::string& name) {
    const std::string bytes = Read(name);
    return bytes.substr(0, bytes.size() / 2);
  }
};

// ---- 0: ok -----------------------------------------------------------------

TEST_F(E2eCliTest, TrainPrintsConfigurationCompileTimeEpochsAndTestAccuracy) {
  const CliResult result = Run({"--data", "data", "--epochs", "2"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  for (const char* part :
       {"  model         64-128-10\n", "  optimizer     sgd\n",
        "  seed          1\n", "240 train, 60 validation, 100 test",
        "compiled in ", "us/step", "\n    1  ", "\n    2  ",
        "test accuracy "}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST_F(E2eCliTest, FuseAndDeviceAreTakenInAnyOrderAndWithEquals) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--fuse", "off", "--device", "cpu"},
        std::vector<std::string>{"--device", "cpu", "--fuse", "off"},
        std::vector<std::string>{"--device=cpu", "--fuse=off"}}) {
    std::vector<std::string> args = {"--data", "data", "--epochs=1"};
    args.insert(args.begin(), flags.begin(), flags.end());
    const CliResult result = Run(args);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("  fuse          off\n"));
  }
}

TEST_F(E2eCliTest, JsonIsOneObjectWithTheDocumentedKeys) {
  const CliResult result =
      Run({"--data", "data", "--epochs", "2", "--json", "--fuse", "off"});
  ASSERT_EQ(result.code, 0) << result.err;
  const json object = json::parse(result.out, nullptr, false);
  ASSERT_TRUE(object.is_object()) << result.out;
  for (const char* key : {"config", "compile_ms", "epochs", "test_accuracy",
                          "dispatch", "lowering"}) {
    EXPECT_TRUE(object.contains(key)) << key;
  }
  EXPECT_EQ(object["config"]["model"], "64-128-10");
  EXPECT_EQ(object["config"]["fuse"], "off");
  EXPECT_EQ(object["dispatch"], "ops");
  EXPECT_THAT(object["compile_ms"].get<double>(), Gt(0));
  ASSERT_EQ(object["epochs"].size(), 2u);
  const json& last = object["epochs"][1];
  EXPECT_EQ(last["epoch"], 2);
  EXPECT_THAT(last["loss"].get<double>(),
              Lt(object["epochs"][0]["loss"].get<double>()));
  for (const char* key : {"train_accuracy", "validation_accuracy"}) {
    EXPECT_THAT(last[key].get<double>(), AllOf(Gt(0.2), testing::Le(1)));
  }
  for (const char* key : {"seconds", "us_per_step", "samples_per_second"}) {
    EXPECT_THAT(last[key].get<double>(), Gt(0)) << key;
  }
}

TEST_F(E2eCliTest, HelpAndVersionGoToStdout) {
  const CliResult help = Run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("--fuse"), HasSubstr("Exit codes")));
  const CliResult version = Run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, AllOf(StartsWith("onestep "), HasSubstr("oneDNN "),
                                 HasSubstr("ISA ")));
  EXPECT_EQ(version.err, "");
}

TEST_F(E2eCliTest, ABareMachineTrainsOnTheBuiltInSetWithOneNotice) {
  if (std::filesystem::exists(kFashionMnistDirectory)) {
    GTEST_SKIP() << "not a bare machine: " << kFashionMnistDirectory;
  }
  std::filesystem::remove_all(Path("data"));
  const CliResult result = Run({"--epochs", "1"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, StartsWith("trainer: no data found"));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
}

TEST_F(E2eCliTest, TheProgressLineIsForTerminalsOnly) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  if (terminal < 0) GTEST_SKIP() << "NO PSEUDO-TERMINALS HERE: not tested";
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  const std::string name = ptsname(terminal);
  const int keep = open(name.c_str(), O_RDWR | O_NOCTTY);
  WriteData("more", 20000, 100);
  const int pid = Start({"--data", "more", "--epochs", "4"}, ".out", name);
  EXPECT_EQ(Wait(pid), 0);
  char buffer[4096];
  std::string text;
  for (ssize_t n; (n = read(terminal, buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, n);
  }
  close(keep);
  close(terminal);
  EXPECT_THAT(text, AllOf(HasSubstr("\repoch "), HasSubstr("ETA ")));
  EXPECT_THAT(Read(".out"), testing::Not(HasSubstr("ETA")));
}

// ---- 2: usage --------------------------------------------------------------

TEST_F(E2eCliTest, WrongFlagsAndValuesAreUsageErrors) {
  ExpectFailure({"--fuze", "on"}, 2, "the nearest is --fuse");
  ExpectFailure({"--fuse", "onn"}, 2, "the nearest is on");
  ExpectFailure({"trian"}, 2, "the nearest is train");
  ExpectFailure({"--batch", "1e"}, 2, "--batch: want an integer");
  ExpectFailure({"--data", "data", "--model", "784-10"}, 2,
                "--model: want 64 as the first width");
  ExpectFailure({"--data", "data", "--disable-pass", "cs"}, 2, "cse");
}

// ---- 3: data and model files -----------------------------------------------

TEST_F(E2eCliTest, BadDataIsNamedBeforeAnyTraining) {
  ExpectFailure({"--data", "nowhere"}, 3, "nowhere");
  ExpectFailure({"--data", "."}, 3, "train-images-idx3-ubyte");
  const std::string images = "data/train-images-idx3-ubyte";
  const std::string good = Read(images);
  Write(images, Truncated(images));
  ExpectFailure({"--data", "data"}, 3, images);
  Write(images, good);
  std::string labels = Read("data/train-labels-idx1-ubyte");
  labels[8 + 17] = 10;
  Write("data/train-labels-idx1-ubyte", labels);
  ExpectFailure({"--data", "data"}, 3, "row 17");
}

TEST_F(E2eCliTest, ImagesOfAnotherSizeInTheTestSetAreBadData) {
  WriteData("small", 30, 30, 4);
  std::filesystem::copy_file(Path("small/t10k-images-idx3-ubyte"),
                             Path("data/t10k-images-idx3-ubyte"),
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(Path("small/t10k-labels-idx1-ubyte"),
                             Path("data/t10k-labels-idx1-ubyte"),
                             std::filesystem::copy_options::overwrite_existing);
  ExpectFailure({"--data", "data"}, 3, "want images of 8x8");
}

TEST_F(E2eCliTest, BadModelFilesAreNamed) {
  ExpectFailure({"eval", "none.safetensors", "--data", "data"}, 3,
                "none.safetensors");
  ASSERT_EQ(Run({"--data", "data", "--epochs", "1", "--out", "run"}).code, 0);
  Write("half.safetensors", Truncated("run/model.safetensors"));
  ExpectFailure({"eval", "half.safetensors", "--data", "data"}, 3,
                "half.safetensors");
  ExpectFailure({"predict", "half.safetensors", "--data", "data"}, 3,
                "half.safetensors");
  ExpectFailure({"predict", "run", "missing"}, 3, "missing");
  WriteData("small", 30, 30, 4);
  ExpectFailure({"eval", "run", "--data", "small"}, 3,
                "want images of 64 pixels");
}

// ---- 4: diverged -----------------------------------------------------------

TEST_F(E2eCliTest, DivergenceIsReportedWithEpochAndStep) {
  const CliResult result = Run({"--data", "data", "--loss", "mse", "--lr",
                                "1e6", "--epochs", "3", "--out", "run"});
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("diverged"), HasSubstr("epoch 1"),
                    HasSubstr("step "), HasSubstr("run/model.safetensors")));
  // The weights that were kept are finite: the file can be evaluated.
  const CliResult eval = Run({"eval", "run", "--data", "data", "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_TRUE(Exists("run/log.jsonl"));
}

// ---- 5: device and lowering ------------------------------------------------

TEST_F(E2eCliTest, WhatCannotRunHereIsNeverRunAnotherWay) {
  ExpectFailure({"--data", "data", "--dispatch", "graph"}, 5, "graph");
  ExpectFailure(
      {"--data", "data", "--dispatch", "single", "--kernels", "onednn"}, 5,
      "single with kernels onednn");
  ExpectFailure({"--data", "data", "--input", "sparse", "--fuse", "off"}, 5,
                "input sparse: ");
  ExpectFailure(
      {"--data", "data", "--input", "sparse", "--disable-pass", "sparse-input"},
      5, "input sparse: pass sparse-input did not run");
  ExpectFailure({"--data", "data", "--device", "gpu", "--dispatch", "single"},
                5, "gpu");
}

// ---- 6: output -------------------------------------------------------------

TEST_F(E2eCliTest, ATraceOrReportThatCannotBeWrittenStopsBeforeTraining) {
  for (const char* flag : {"--trace", "--report"}) {
    const CliResult result = Run({"--data", "data", flag, "nowhere/file"});
    EXPECT_EQ(result.code, 6) << flag;
    EXPECT_THAT(result.err, HasSubstr("cannot write nowhere/file"));
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(E2eCliTest, ATraceMayLieInTheFolderThatTheRunMakes) {
  const CliResult result = Run({"--data", "data", "--epochs", "1", "--out",
                                "new", "--trace", "new/trace.json"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(Exists("new/trace.json"));
  EXPECT_TRUE(Exists("new/model.safetensors"));
}

TEST_F(E2eCliTest, AnOutputThatIsNoRegularFileIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const std::vector<std::string> verbs[] = {{"--trace"},
                                            {"--report"},
                                            {"profile", "--trace"},
                                            {"word2vec", "text", "--cache"}};
  for (std::vector<std::string> args : verbs) {
    args.emplace_back("pipe");
    ExpectFailure(args, 6,
                  "cannot write pipe: want a regular file, got a pipe");
    args.back() = "/dev/full";
    ExpectFailure(args, 6, "want a regular file, got a device");
  }
}

TEST_F(E2eCliTest, AnOutputFolderWithFilesIsKeptWithoutForce) {
  Write("run/precious", "mine");
  ExpectFailure({"--data", "data", "--out", "run"}, 6, "--force");
  EXPECT_EQ(Read("run/precious"), "mine");
  EXPECT_FALSE(Exists("run/model.safetensors"));
  EXPECT_EQ(
      Run({"--data", "data", "--epochs", "1", "--out", "run", "--force"}).code,
      0);
  EXPECT_EQ(Read("run/precious"), "mine");
  EXPECT_TRUE(Exists("run/model.safetensors"));
}

TEST_F(E2eCliTest, AnOutputThatCannotBeWrittenEndsTheRunBeforeTraining) {
  ExpectFailure({"--data", "data", "--out", "data/train-images-idx3-ubyte"}, 6,
                "not a folder");
  ExpectFailure({"--data", "data", "--out", "/proc/none/run"}, 6,
                "cannot write /proc/none/run");
  ExpectFailure({"--data", "data", "--dump-ir", "/proc/none"}, 6, "--dump-ir");
}

TEST_F(E2eCliTest, AFullDiskBehindStdoutIsAnOutputError) {
  const int pid = Start({"--data", "data", "--epochs", "1", "--out", "run"},
                        "/dev/full", ".err");
  EXPECT_EQ(Wait(pid), 6);
  EXPECT_THAT(Read(".err"), HasSubstr("stdout: cannot write: No space left"));
  EXPECT_TRUE(Exists("run/model.safetensors"));  // the work is not lost
}

TEST_F(E2eCliTest, AClosedStdoutIsAnOutputErrorAndNoFileTakesItsPlace) {
  const std::string command = "cd " + Path(".") +
                              " && " ONESTEP_TRAINER_PATH
                              " --data data --epochs 1 --out run >&- 2>.err";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 6);
  EXPECT_THAT(Read(".err"), HasSubstr("stdout: cannot write"));
  EXPECT_EQ(Run({"eval", "run", "--data", "data"}).code, 0);
}

TEST_F(E2eCliTest, AClosedPipeBehindStdoutIsAnOutputError) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0666), 0);
  // Not inherited: as long as anybody can read, the pipe is whole.
  const int reader =
      open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const int pid = Start(
      {"--data", "data", "--epochs", "50", "--threads", "1", "--out", "run"},
      "pipe", ".err");
  // Wait for the first output, then go away.
  char byte;
  while (read(reader, &byte, 1) != 1) usleep(1000);
  close(reader);
  EXPECT_EQ(Wait(pid), 6);
  EXPECT_THAT(Read(".err"), HasSubstr("stdout: cannot write: Broken pipe"));
  EXPECT_TRUE(Exists("run/model.safetensors"));
}

// ---- 130, 143: signals -----------------------------------------------------

TEST_F(E2eCliTest, ASignalFinishesTheStepSavesAndExits) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string run = signal == SIGINT ? "int" : "term";
    const CliResult result =
        RunUntil(run + "/log.jsonl", signal,
                 {"--data", "data", "--epochs", "1000000", "--out", run});
    EXPECT_EQ(result.code, 128 + signal);
    EXPECT_THAT(result.err,
                AllOf(HasSubstr(signal == SIGINT ? "SIGINT" : "SIGTERM"),
                      HasSubstr(run + "/model.safetensors")));
    const CliResult eval = Run({"eval", run, "--data", "data", "--json"});
    ASSERT_EQ(eval.code, 0) << eval.err;
    EXPECT_THAT(json::parse(eval.out)["accuracy"].get<double>(), Gt(0.2));
  }
}

TEST_F(E2eCliTest, JsonOfAnInterruptedRunHasTheEpochsThatWereDone) {
  const CliResult result = RunUntil(
      "run/log.jsonl", SIGINT,
      {"--data", "data", "--epochs", "1000000", "--out", "run", "--json"});
  EXPECT_EQ(result.code, 130);
  const json object = json::parse(result.out, nullptr, false);
  ASSERT_TRUE(object.is_object()) << result.out;
  EXPECT_GE(object["epochs"].size(), 1u);
  EXPECT_TRUE(object["test_accuracy"].is_null());
}

}  // namespace
}  // namespace onestep
