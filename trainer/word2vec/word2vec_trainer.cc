// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/word2vec_trainer.h"

#include <algorithm>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "trainer/word2vec/row_visits.h"
#include "trainer/word2vec/subsample.h"

namespace onestep {
namespace {

constexpr uint64_t kSliceStream = uint64_t{8} << 32;  // see random.h
constexpr double kNegativePower = 0.75;
constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();

// Steps that are sampled, then run: binding them costs little then, and they
// still lie in the second-level cache.
constexpr int64_t kBlockSteps = 256;

// Tokens of a slice that a thread takes at once: few enough that all end an
// epoch together, many enough that their borders, where windows are cut, do
// not count.
int64_t SliceTokens(int64_t tokens, int threads) {
  if (threads == 1) return std::max<int64_t>(1, tokens);
  return std::clamp<int64_t>(tokens / (16 * threads), 1 << 10, 1 << 20);
}

// Windows of a thread in which all of its hot rows are merged, at most: so few
// that a small corpus sees many merges.
int64_t WindowsPerMerge(int64_t words, int threads) {
  constexpr int64_t kMost = 1 << 14, kMergesPerEpoch = 32;
  return std::clamp<int64_t>(words / threads / kMergesPerEpoch, 1, kMost);
}

// Words of all threads between changes of the class of negatives that each
// draws: many changes in an epoch of a small corpus.
int64_t WordsPerClass(int64_t words) {
  return std::clamp<int64_t>(words / 16, 1, 1 << 17);
}

// With half of what negatives draw and three quarters of the contexts, in a
// text of some ten thousand different words; and about what a core's cache
// holds.
constexpr int64_t kHotRows = 2048;

// Merges grow with the threads' number squared, and each waits for the others.
constexpr int kMostThreadsWithCopies = 4;

// How many of the most frequent rows each thread has a copy of.
int64_t HotRowsOf(const Word2vecConfig& config, int threads, int64_t words) {
  if (threads == 1 || config.deterministic) return 0;
  const int64_t most = config.hs ? words - 1 : words;
  if (config.hot_rows >= 0) return std::min(most, config.hot_rows);
  return threads > kMostThreadsWithCopies ? 0 : std::min(most, kHotRows);
}

TableSizes SizesOf(const Word2vecConfig& config, int threads, int64_t words) {
  TableSizes sizes;
  sizes.words = words;
  sizes.outputs = config.hs ? std::max<int64_t>(1, words - 1) : words;
  sizes.size = config.size;
  sizes.threads = threads;
  sizes.hot = HotRowsOf(config, threads, words);
  return sizes;
}

// Of a thread: its block, and the values of a step, which without the fused op
// are rows for each context and output and, in the textbook graph, two dense
// gradients and the zeros that they begin with.
int64_t BytesOfSteps(const SamplerSource& source, const TableSizes& sizes,
                     const CompileOptions& options) {
  const int64_t contexts = source.contexts(), outputs = source.outputs();
  const auto runs = [&](const char* pass) {
    const std::vector<std::string>& disabled = options.disabled_passes;
    return options.fuse &&
           std::find(disabled.begin(), disabled.end(), pass) == disabled.end();
  };
  const bool dense = !runs("fold-learning-rate") || !runs("sparse-update");
  return StepBlock::Bytes(std::max(kBlockSteps, source.steps_of_window()),
                          contexts, outputs) +
         8 * sizes.stride() * (contexts + outputs) +
         (dense ? 8 * sizes.stride() * (sizes.in_rows() + sizes.out_rows())
                : 0);
}

}  // namespace

Word2vecMemory Word2vecTrainer::MemoryOf(const Word2vecConfig& config,
                                         const CompileOptions& options,
                                         const Corpus& corpus) {
  const Vocabulary& vocabulary = corpus.vocabulary;
  const int threads = options.threads;
  const TableSizes sizes = SizesOf(config, threads, vocabulary.size());
  SamplerSource source;
  source.config = &config;
  std::optional<HuffmanTree> tree;
  if (config.hs) source.tree = &tree.emplace(vocabulary.counts());
  Word2vecMemory memory;
  memory.tables = sizes.shared_bytes();
  memory.hot_rows = sizes.private_bytes();
  memory.tokens = static_cast<int64_t>(corpus.tokens.size_bytes());
  // Counts and ends; keep; a cell of the alias table, or the tree.
  memory.words = sizes.words * (16 + 4 + (config.hs ? 9 : 8)) +
                 static_cast<int64_t>(vocabulary.words().size());
  memory.steps = threads * BytesOfSteps(source, sizes, options);
  if (config.deterministic) {
    memory.deterministic = Shards::Bytes(source, sizes, threads);
  }
  return memory;
}

// Which rows a thread works with in an epoch: those that all share or, where
// cores are far apart, its copies of the hot ones.
class Word2vecTrainer::RowsInUse {
 public:
  RowsInUse(Word2vecTrainer& trainer, int worker)
      : trainer_(trainer), worker_(worker) {
    if (trainer_.hot_rows_.empty()) return;
    words_per_class_ = WordsPerClass(trainer_.corpus_.vocabulary.total());
    copies_ = &trainer_.hot_rows_[worker];
    Switch(!trainer_.watch_ || trainer_.watch_->Probe(worker));
  }
  ~RowsInUse() {
    if (copied_) copies_->MergeAll();
  }
  RowsInUse(const RowsInUse&) = delete;
  RowsInUse& operator=(const RowsInUse&) = delete;

  // For the next block.
  const RowMap& Next() {
    if (trainer_.watch_ && steps_ >= kStepsPerProbe) {
      steps_ = 0;
      Switch(trainer_.watch_->Probe(worker_));
    }
    if (copied_) {
      map_.own_class = static_cast<int32_t>(
          (worker_ + trainer_.run_->words_done() / words_per_class_) %
          map_.classes);
    }
    return map_;
  }

  // After the block was run.
  void Used(const StepBlock& block) {
    steps_ += block.steps;
    if (!copied_) return;
    trainer_.words_with_copies_.fetch_add(block.words,
                                          std::memory_order_relaxed);
    copies_->MergeDue(block.used);
  }

 private:
  static constexpr int64_t kStepsPerProbe = 1024;

  void Switch(bool copied) {
    if (copied == copied_) return;
    copied_ = copied;
    if (copied) {
      copies_->Take();
      map_ = trainer_.tables_->MapOf(worker_);
      if (!trainer_.config_.hs) map_.classes = trainer_.threads_;
    } else {
      copies_->MergeAll();
      map_ = RowMap();
    }
  }

  Word2vecTrainer& trainer_;
  const int worker_;
  HotRows* copies_ = nullptr;  // none: all rows are shared
  bool copied_ = false;
  RowMap map_;
  int64_t steps_ = 0;  // since the last probe
  int64_t words_per_class_ = 0;
};

Word2vecTrainer::Word2vecTrainer(const Word2vecConfig& config,
                                 const Corpus& corpus, int64_t epochs,
                                 uint64_t seed, int threads)
    : config_(config),
      corpus_(corpus),
      seed_(seed),
      threads_(threads),
      keep_(KeepThresholds(corpus.vocabulary.counts(), config.sample)) {
  source_.config = &config_;
  source_.counts = corpus.vocabulary.counts();
  source_.keep = keep_;
  if (config.hs) {
    tree_.emplace(corpus.vocabulary.counts());
    source_.tree = &*tree_;
  } else {
    negatives_.emplace(corpus.vocabulary.counts(), kNegativePower);
    source_.negatives = &*negatives_;
  }
  int64_t words = epochs * corpus.vocabulary.total();
  if (config.max_words > 0) words = std::min(words, config.max_words);
  run_ = std::make_unique<TrainingRun>(
      config, corpus.vocabulary, words,
      static_cast<double>(source_.outputs()) * std::numbers::ln2);
}

absl::StatusOr<std::unique_ptr<Word2vecTrainer>> Word2vecTrainer::Create(
    const Word2vecConfig& config, const Corpus& corpus, int64_t epochs,
    uint64_t seed, const CompileOptions& options) {
  std::unique_ptr<Word2vecTrainer> trainer(
      new Word2vecTrainer(config, corpus, epochs, seed, options.threads));
  RETURN_IF_ERROR(trainer->Prepare(options));
  return trainer;
}

absl::Status Word2vecTrainer::Prepare(const CompileOptions& options) {
  const TableSizes sizes =
      SizesOf(config_, threads_, corpus_.vocabulary.size());
  if (std::max(sizes.in_rows(), sizes.out_rows()) > kMostRows) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "word2vec: want tables of at most ", kMostRows, " rows, got ",
        std::max(sizes.in_rows(), sizes.out_rows())));
  }
  ASSIGN_OR_RETURN(tables_, EmbeddingTables::Create(sizes, seed_));
  ASSIGN_OR_RETURN(team_, Team::Create(threads_, options.affinity));
  CompileOptions own = options;
  own.threads = 1;  // each thread runs steps of its own
  int64_t in_rows = sizes.in_rows(), out_rows = sizes.out_rows();
  if (config_.deterministic) {
    ASSIGN_OR_RETURN(shards_, Shards::Create(source_, *tables_, threads_));
    in_rows = shards_->in_rows();
    out_rows = shards_->out_rows();
  }
  if (sizes.hot > 0 && config_.hot_rows < 0) watch_.emplace(threads_);
  block_steps_ = std::max(kBlockSteps, source_.steps_of_window());
  std::vector<MergeGroup> groups;
  if (sizes.hot > 0) {
    const int others = threads_ - 1;
    groups = MergeGroups(source_, sizes.hot, others,
                         WindowsPerMerge(corpus_.vocabulary.total(), threads_));
    block_steps_ = StepsUnseen(source_, others, block_steps_);
  }
  for (int w = 0; w < threads_; ++w) {
    ASSIGN_OR_RETURN(
        WindowProgram program,
        WindowProgram::Create(source_, in_rows, out_rows, sizes.stride(), own));
    own.dump_dir.clear();  // one thread's graphs are those of all
    RETURN_IF_ERROR(program.BindTables(tables_->in(), tables_->out()));
    programs_.push_back(std::move(program));
    if (sizes.hot == 0) continue;
    ASSIGN_OR_RETURN(HotRows hot,
                     HotRows::Create(*tables_, w, groups, merging_));
    hot_rows_.push_back(std::move(hot));
  }
  return absl::OkStatus();
}

absl::Status Word2vecTrainer::RunEpoch(int64_t epoch,
                                       const TrainingRun::Poll& poll,
                                       TrainedCounts& counts) {
  run_->BeginEpoch(epoch, poll);
  if (shards_) {
    shards_->RunEpoch(corpus_.tokens, seed_, epoch, *team_, programs_, *run_);
  } else {
    next_slice_ = 0;
    team_->Run([&](int worker) { RunSlices(worker, epoch); });
  }
  run_->EndEpoch();
  counts.Add(run_->counts());
  return run_->status();
}

void Word2vecTrainer::RunSlices(int worker, int64_t epoch) {
  const auto size = static_cast<int64_t>(corpus_.tokens.size());
  const int64_t slice = SliceTokens(size, threads_);
  const int64_t slices = (size + slice - 1) / slice;
  WindowSampler sampler(source_);
  StepBlock block(block_steps_, source_.contexts(), source_.outputs());
  RowsInUse rows(*this, worker);
  const auto go_on = [&] { return !run_->stopped() && !run_->finished(); };
  while (go_on()) {
    const int64_t s = next_slice_.fetch_add(1, std::memory_order_relaxed);
    if (s >= slices) break;
    sampler.Start(
        corpus_.tokens.subspan(s * slice, std::min(slice, size - s * slice)),
        Random(seed_, kSliceStream + epoch * slices + s));
    while (go_on() && sampler.Fill(rows.Next(), block)) {
      const float lr = run_->Rate();
      run_->Count(block, lr, programs_[worker].Run(block, lr));
      rows.Used(block);
      if (worker == 0) run_->MaybePoll();
    }
  }
}

VectorsView Word2vecTrainer::Vectors() const {
  VectorsView view;
  view.size = tables_->sizes().words;
  view.dim = tables_->sizes().size;
  view.rows = tables_->in();
  view.stride = tables_->sizes().stride();
  const Vocabulary& vocabulary = corpus_.vocabulary;
  view.word = [&](int64_t id) {
    return vocabulary.word(static_cast<int32_t>(id));
  };
  view.count = [&](int64_t id) {
    return vocabulary.count(static_cast<int32_t>(id));
  };
  return view;
}

}  // namespace onestep
