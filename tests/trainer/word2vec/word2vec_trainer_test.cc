// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/word2vec_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "tests/status_matchers.h"
#include "tests/temp_folder.h"
#include "trainer/word2vec/synthetic_corpus.h"

namespace onestep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Word2vecTrainerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    const std::string path = folder_->path() + "/corpus.txt";
    ASSERT_TRUE(WriteSyntheticCorpus(path, 40'000, 1).ok());
    absl::StatusOr<Corpus> corpus = ReadCorpus(path, CorpusOptions());
    ASSERT_TRUE(corpus.ok()) << corpus.status();
    corpus_ = new Corpus(std::move(*corpus));
  }
  static void TearDownTestSuite() {
    delete corpus_;
    delete folder_;
  }

  struct Trained {
    std::vector<float> vectors;  // [V, size]
    std::vector<double> losses;  // of each epoch
  };

  static absl::StatusOr<Trained> Train(const Word2vecConfig& config,
                                       CompileOptions options,
                                       int64_t epochs = 2, uint64_t seed = 1) {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<Word2vecTrainer> trainer,
        Word2vecTrainer::Create(config, *corpus_, epochs, seed, options));
    Trained trained;
    for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
      TrainedCounts counts;
      RETURN_IF_ERROR(trainer->RunEpoch(epoch, GoOn, counts));
      trained.losses.push_back(counts.loss_per_pair());
    }
    const VectorsView view = trainer->Vectors();
    for (int64_t i = 0; i < view.size; ++i) {
      trained.vectors.insert(trained.vectors.end(), view.row(i),
                             view.row(i) + view.dim);
    }
    return trained;
  }

  static bool GoOn(const TrainedCounts&, double) { return true; }

  static CompileOptions Threads(int threads) {
    CompileOptions options;
    options.threads = threads;
    return options;
  }

  static Word2vecConfig Small() {
    Word2vecConfig config;
    config.size = 20;
    return config;
  }

  static TempFolder* folder_;
  static Corpus* corpus_;
};

TempFolder* Word2vecTrainerTest::folder_ = nullptr;
Corpus* Word2vecTrainerTest::corpus_ = nullptr;

// Of the largest value, so that small ones do not count as wrong.
double MaxDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(double{a[i]} - double{b[i]}));
    largest = std::max(largest, std::abs(double{a[i]}));
  }
  return difference / largest;
}

struct NamedConfig {
  const char* name;
  Word2vecConfig config;
};

std::vector<NamedConfig> AllModels() {
  std::vector<NamedConfig> all;
  Word2vecConfig config;
  config.size = 20;
  all.push_back({"shared", config});
  config.negatives.contexts = Negatives::kExact;
  all.push_back({"exact", config});
  config.negatives.contexts = 3;
  all.push_back({"group", config});
  config.hs = true;
  all.push_back({"hs", config});
  config.cbow = true;
  all.push_back({"cbow hs", config});
  config.hs = false;
  all.push_back({"cbow", config});
  config.cbow_gradient = CbowGradient::kExact;
  all.push_back({"cbow exact", config});
  return all;
}

TEST_F(Word2vecTrainerTest, TheFusedStepTrainsWhatTheTextbookGraphDoes) {
  for (NamedConfig& model : AllModels()) {
    SCOPED_TRACE(model.name);
    // So few that roundings, which grow from step to step, stay small.
    model.config.max_words = 300;
    CompileOptions fused = Threads(1), sparse = Threads(1),
                   unfused = Threads(1);
    sparse.disabled_passes = {"fuse-sparse-window"};
    unfused.fuse = false;
    ASSERT_OK_AND_ASSIGN(const Trained a, Train(model.config, fused, 1));
    ASSERT_OK_AND_ASSIGN(const Trained b, Train(model.config, sparse, 1));
    ASSERT_OK_AND_ASSIGN(const Trained c, Train(model.config, unfused, 1));
    EXPECT_LT(MaxDifference(a.vectors, b.vectors), 1e-5);
    EXPECT_LT(MaxDifference(a.vectors, c.vectors), 1e-5);
    EXPECT_NEAR(a.losses[0], c.losses[0], 1e-5);
  }
}

TEST_F(Word2vecTrainerTest, EveryModelLearns) {
  for (NamedConfig& model : AllModels()) {
    SCOPED_TRACE(model.name);
    ASSERT_OK_AND_ASSIGN(const Trained one, Train(model.config, Threads(1), 3));
    EXPECT_LT(one.losses[2], one.losses[0]);
    for (const int64_t hot_rows : {0, 50, 1000}) {  // threads' own copies
      model.config.hot_rows = hot_rows;
      ASSERT_OK_AND_ASSIGN(const Trained two,
                           Train(model.config, Threads(2), 3));
      // The threads see each other's rows late, on a busy machine very late.
      EXPECT_NEAR(two.losses[2], one.losses[2], 0.15 * one.losses[2])
          << hot_rows;
    }
  }
}

TEST_F(Word2vecTrainerTest, OneThreadRepeatsItself) {
  ASSERT_OK_AND_ASSIGN(const Trained a, Train(Small(), Threads(1)));
  ASSERT_OK_AND_ASSIGN(const Trained b, Train(Small(), Threads(1)));
  ASSERT_OK_AND_ASSIGN(const Trained other, Train(Small(), Threads(1), 2, 7));
  EXPECT_EQ(a.vectors, b.vectors);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_NE(a.vectors, other.vectors);
}

TEST_F(Word2vecTrainerTest, DeterministicTrainingIsThatOfAnyNumberOfThreads) {
  for (NamedConfig& model : AllModels()) {
    SCOPED_TRACE(model.name);
    model.config.deterministic = true;
    ASSERT_OK_AND_ASSIGN(const Trained one, Train(model.config, Threads(1)));
    for (const int threads : {2, 3}) {
      ASSERT_OK_AND_ASSIGN(const Trained more,
                           Train(model.config, Threads(threads)));
      EXPECT_EQ(one.vectors, more.vectors) << threads;
      EXPECT_EQ(one.losses, more.losses) << threads;
    }
    EXPECT_LT(one.losses[1], one.losses[0]);
  }
}

// Workers that add up what each learnt alone would go too far.
TEST_F(Word2vecTrainerTest, ManyWorkersTrainAsOneDoesAtHighRates) {
  for (NamedConfig& model : AllModels()) {
    SCOPED_TRACE(model.name);
    model.config.lr = 0.1;
    model.config.window = 10;
    model.config.sample = 0;
    ASSERT_OK_AND_ASSIGN(const Trained one, Train(model.config, Threads(1), 1));
    model.config.hot_rows = 1000;
    ASSERT_OK_AND_ASSIGN(const Trained copies,
                         Train(model.config, Threads(8), 1));
    // Busy cores let threads see each other's rows late.
    EXPECT_LT(copies.losses[0], 1.4 * one.losses[0]);
    model.config.deterministic = true;
    ASSERT_OK_AND_ASSIGN(const Trained shards,
                         Train(model.config, Threads(1), 1));
    EXPECT_NEAR(shards.losses[0], one.losses[0], 0.1 * one.losses[0]);
  }
}

TEST_F(Word2vecTrainerTest, AnEpochTwiceAsBadAsGuessingIsAnError) {
  TrainingRun run(Small(), corpus_->vocabulary, 1'000'000, /*guess=*/4);
  StepBlock block(1, 1, 1);
  block.steps = 1;
  const auto count = [&](int64_t pairs, float loss_of_pair) {
    block.pairs = pairs;
    block.loss[0] = static_cast<float>(pairs) * loss_of_pair;
    run.Count(block, 0.5f, absl::OkStatus());
  };
  run.BeginEpoch(3, GoOn);
  count(9'000, 20);  // may still get better
  EXPECT_FALSE(run.stopped());
  count(9'000, 1);
  EXPECT_TRUE(run.stopped());
  EXPECT_EQ(run.status(),
            absl::OutOfRangeError("the loss is 10.5 in epoch 3 at lr 0.5, of "
                                  "guessing it is 4: want a lower --lr"));
  TrainingRun good(Small(), corpus_->vocabulary, 1'000'000, 11);
  good.BeginEpoch(1, GoOn);
  good.Count(block, 0.5f, absl::OkStatus());
  good.EndEpoch();
  EXPECT_OK(good.status());
}

TEST_F(Word2vecTrainerTest, ALossThatIsNotFiniteNamesEpochRateAndWord) {
  Word2vecConfig config = Small();
  config.lr = 3e38;
  for (const int threads : {1, 2}) {
    const absl::Status status = Train(config, Threads(threads)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("not finite in epoch 1 at lr "),
              HasSubstr("e+38, word '"), HasSubstr("want a lower --lr")));
  }
}

TEST_F(Word2vecTrainerTest, StopsWhenThePollSaysSo) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Word2vecTrainer> trainer,
      Word2vecTrainer::Create(Small(), *corpus_, 5, 1, Threads(1)));
  const auto stop = [](const TrainedCounts&, double) { return false; };
  TrainedCounts counts;
  EXPECT_EQ(trainer->RunEpoch(1, stop, counts).code(),
            absl::StatusCode::kCancelled);
  EXPECT_GT(counts.pairs, 0);
  EXPECT_LT(trainer->run().words_done(), corpus_->vocabulary.total());
}

TEST_F(Word2vecTrainerTest, EndsWithTheWordsAskedFor) {
  Word2vecConfig config = Small();
  config.max_words = 5000;
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Word2vecTrainer> trainer,
      Word2vecTrainer::Create(config, *corpus_, 5, 1, Threads(1)));
  TrainedCounts counts;
  ASSERT_TRUE(trainer->RunEpoch(1, GoOn, counts).ok());
  EXPECT_TRUE(trainer->run().finished());
  EXPECT_GE(counts.words, 5000);
  EXPECT_LT(counts.words, 6000);
  EXPECT_FLOAT_EQ(trainer->run().Rate(), 1e-4f);
}

// A text of words that are nearly all alone in their lines.
TEST_F(Word2vecTrainerTest, StopsWhereHardlyAnyWordHasANeighbour) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "lonely\n";
  text += "not alone not alone";
  const std::string path = folder_->path() + "/lonely.txt";
  std::ofstream(path) << text;
  CorpusOptions options;
  options.min_count = 1;
  ASSERT_OK_AND_ASSIGN(const Corpus corpus, ReadCorpus(path, options));
  Word2vecConfig config = Small();
  config.sample = 0;
  config.max_words = 1000;
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Word2vecTrainer> trainer,
      Word2vecTrainer::Create(config, corpus, 1, 1, Threads(1)));
  TrainedCounts counts;
  ASSERT_TRUE(trainer->RunEpoch(1, GoOn, counts).ok());
  EXPECT_LT(counts.words, 10'000);
}

TEST_F(Word2vecTrainerTest, MemoryOfARunIsWithinItsBound) {
  Word2vecConfig config;
  config.hot_rows = 100;
  const int64_t words = corpus_->vocabulary.size();
  ASSERT_GT(words, 100);
  for (const bool hs : {false, true}) {
    config.hs = hs;
    for (const int threads : {1, 2}) {
      const Word2vecMemory memory =
          Word2vecTrainer::MemoryOf(config, Threads(threads), *corpus_);
      const int64_t hot = threads == 1 ? 0 : 100;
      // Two tables of rows of 112 values; copies of hot rows and what they
      // were.
      EXPECT_EQ(memory.tables, 4 * 112 * (words + words - hs));
      EXPECT_EQ(memory.hot_rows, 2 * 2 * 4 * 112 * threads * hot);
      EXPECT_EQ(memory.tokens, 4 * std::ssize(corpus_->tokens));
      EXPECT_LE(memory.words, 64 * words);
      EXPECT_EQ(memory.deterministic, 0);
      EXPECT_LT(memory.steps, threads * (1 << 18));
    }
  }
  CompileOptions unfused = Threads(1);
  unfused.fuse = false;  // dense gradients
  const Word2vecMemory memory =
      Word2vecTrainer::MemoryOf(config, unfused, *corpus_);
  EXPECT_GT(memory.steps, 2 * memory.tables);
  config.deterministic = true;
  EXPECT_GT(
      Word2vecTrainer::MemoryOf(config, Threads(2), *corpus_).deterministic, 0);
}

// What each of two threads adds to a row is there after both have merged.
TEST(HotRowsTest, MergesAddUp) {
  TableSizes sizes;
  sizes.words = 7;
  sizes.outputs = 5;
  sizes.size = 3;
  sizes.threads = 2;
  sizes.hot = 4;
  ASSERT_OK_AND_ASSIGN(EmbeddingTables tables,
                       EmbeddingTables::Create(sizes, 1));
  const std::vector<float> before(tables.in(),
                                  tables.in() + sizes.words * sizes.stride());
  std::mutex mutex;
  // Row 0 in each window, the others in turn.
  const std::vector<MergeGroup> groups = {{0, 1, 1}, {1, 3, 6}};
  ASSERT_OK_AND_ASSIGN(HotRows a, HotRows::Create(tables, 0, groups, mutex));
  ASSERT_OK_AND_ASSIGN(HotRows b, HotRows::Create(tables, 1, groups, mutex));
  a.Take();
  b.Take();
  const auto in = [&](int thread, int id) -> float& {
    return tables.in()[tables.MapOf(thread).In(id) * sizes.stride() + 1];
  };
  const auto out = [&](int thread, int id) -> float& {
    return tables.out()[tables.MapOf(thread).Out(id) * sizes.stride() + 2];
  };
  in(0, 2) += 1;
  in(1, 2) += 2;
  in(1, 6) += 5;  // not hot: shared
  out(0, 3) += 4;
  a.MergeAll();
  b.MergeDue(4);  // rows 0, 1 and 2
  a.MergeDue(6);  // all
  const int64_t stride = sizes.stride();
  EXPECT_FLOAT_EQ(tables.in()[2 * stride + 1], before[2 * stride + 1] + 3);
  EXPECT_FLOAT_EQ(tables.in()[6 * stride + 1], before[6 * stride + 1] + 5);
  EXPECT_FLOAT_EQ(tables.out()[3 * stride + 2], 4);
  EXPECT_FLOAT_EQ(in(0, 2), before[2 * stride + 1] + 3);
  EXPECT_FLOAT_EQ(in(1, 2), before[2 * stride + 1] + 3);
  EXPECT_EQ(out(1, 3), 0);  // not merged yet
  b.MergeAll();
  EXPECT_FLOAT_EQ(out(1, 3), 4);
  for (int64_t i = 0; i < stride; ++i) {
    EXPECT_EQ(tables.in()[i], before[i]);  // row 0: nobody touched it
  }
  tables.in()[2 * stride + 1] = 9;  // while no copies were in use
  a.Take();
  in(0, 2) += 1;
  a.MergeAll();
  EXPECT_FLOAT_EQ(tables.in()[2 * stride + 1], 10);
}

}  // namespace
}  // namespace onestep
