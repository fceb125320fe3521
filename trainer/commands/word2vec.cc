// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/cpu/core_latency.h"
#include "trainer/available_memory.h"
#include "trainer/commands/commands.h"
#include "trainer/finite.h"
#include "trainer/graph_report.h"
#include "trainer/interrupt.h"
#include "trainer/json_text.h"
#include "trainer/numbers.h"
#include "trainer/output_dir.h"
#include "trainer/status_line.h"
#include "trainer/version.h"
#include "trainer/word2vec/corpus.h"
#include "trainer/word2vec/vectors_file.h"
#include "trainer/word2vec/word2vec_trainer.h"

namespace onestep {
namespace {

using Json = nlohmann::ordered_json;

double Seconds(int64_t begin_ns) {
  return 1e-9 * static_cast<double>(NowNs() - begin_ns);
}

// What was asked for, by flag name.
Json ConfigOf(const Config& config) {
  const Word2vecConfig& word2vec = config.word2vec;
  Json json;
  json["corpus"] = word2vec.corpus;
  json["size"] = word2vec.size;
  json["window"] = word2vec.window;
  json["cbow"] = word2vec.cbow ? 1 : 0;
  if (word2vec.cbow) json["cbow-gradient"] = NameOf(word2vec.cbow_gradient);
  json["hs"] = word2vec.hs;
  if (!word2vec.hs) {
    json["negative"] = word2vec.negative;
    json["negatives"] = word2vec.negatives.ToString();
  }
  json["sample"] = word2vec.sample;
  json["min-count"] = word2vec.min_count;
  json["max-vocab"] = word2vec.max_vocab;
  json["epochs"] = config.epochs;
  json["max-words"] = word2vec.max_words;
  json["lr"] = word2vec.lr;
  json["min-lr"] = word2vec.min_lr;
  if (word2vec.hot_rows >= 0) json["hot-rows"] = word2vec.hot_rows;
  json["seed"] = config.seed;
  json["fuse"] = NameOf(config.compile.fuse);
  json["threads"] = config.compile.threads;
  json["deterministic"] = word2vec.deterministic;
  if (!config.compile.disabled_passes.empty()) {
    json["disable-pass"] = config.compile.disabled_passes;
  }
  json["cache"] = word2vec.cache;
  json["format"] = NameOf(word2vec.format);
  json["out"] = config.out;
  return json;
}

double WordsPerSecond(int64_t words, double seconds) {
  return static_cast<double>(words) / std::max(seconds, 1e-9);
}

// "-" without a pair.
std::string LossText(const TrainedCounts& counts) {
  return counts.pairs == 0 ? "-"
                           : absl::StrFormat("%.4f", counts.loss_per_pair());
}

// `words` of the text, which are the sum of the next three.
Json CountsJson(int64_t words, const TrainedCounts& counts, double seconds) {
  Json json;
  json["words"] = words;
  json["words_used"] = counts.used;
  json["words_left_out"] = counts.words - counts.used;
  json["words_not_in_vocabulary"] = words - counts.words;
  json["pairs"] = counts.pairs;
  json["loss"] = nullptr;
  if (counts.pairs > 0) json["loss"] = counts.loss_per_pair();
  json["seconds"] = seconds;
  json["words_per_s"] = WordsPerSecond(words, seconds);
  return json;
}

class Word2vecCommand {
 public:
  Word2vecCommand(const Config& config, Console& console)
      : config_(config), console_(console) {}

  absl::Status Run();

 private:
  absl::Status Read();
  absl::Status Prepare();
  absl::Status CreateOutput();
  absl::Status RunEpochs();
  void AfterEpoch(int64_t epoch, const TrainedCounts& counts, double seconds);
  absl::Status CheckFinite() const;
  absl::Status Save();
  absl::Status Explain(const absl::Status& status) const;
  void PrintBeforeReading();
  void PrintPlan();
  void Report();
  std::string MemoryText() const;
  Json MemoryJson() const;
  // The trainer counts words of the vocabulary; all that is shown counts words
  // of the text, those that are not in the vocabulary too.
  double TextPerVocabulary() const {
    return static_cast<double>(corpus_.counts.tokens) /
           static_cast<double>(corpus_.vocabulary.total());
  }
  int64_t WordsOfText(int64_t words) const {
    return std::llround(TextPerVocabulary() * static_cast<double>(words));
  }
  std::string OutPath(const char* name) const {
    return (std::filesystem::path(config_.out) / name).string();
  }
  std::string VectorsPath() const;

  Config config_;
  Console& console_;
  const StatusLine line_{"word2vec"};
  Corpus corpus_;
  double read_seconds_ = 0;
  Word2vecMemory memory_;
  std::optional<CoreLatency> latency_;
  std::unique_ptr<Word2vecTrainer> trainer_;
  std::optional<LineLog> log_;
  absl::Status log_status_;
  Json epochs_ = Json::array();
  TrainedCounts done_;
  int64_t words_ = 0;   // of the text, that were done
  double seconds_ = 0;  // of training
};

absl::Status Word2vecCommand::Run() {
  if (!config_.out.empty()) {
    RETURN_IF_ERROR(CheckOutputDir(config_.out, config_.force));
  }
  if (!config_.word2vec.cache.empty()) {
    // Where the cache may be to lie.
    if (!config_.out.empty()) RETURN_IF_ERROR(MakeFolder(config_.out));
    RETURN_IF_ERROR(CheckCanWrite(config_.word2vec.cache));
  }
  RETURN_IF_ERROR(Read());
  RETURN_IF_ERROR(Prepare());
  if (!config_.out.empty()) RETURN_IF_ERROR(CreateOutput());
  CatchSignals();
  const absl::Status status = RunEpochs();
  line_.Clear();
  if (!status.ok() && !absl::IsCancelled(status)) return status;
  RETURN_IF_ERROR(CheckFinite());
  if (!config_.out.empty()) RETURN_IF_ERROR(Save());
  Report();
  if (!status.ok()) return Explain(status);
  return log_status_;
}

absl::Status Word2vecCommand::Read() {
  const Word2vecConfig& word2vec = config_.word2vec;
  PrintBeforeReading();
  CorpusOptions options;
  options.min_count = word2vec.min_count;
  options.max_vocab = word2vec.max_vocab;
  options.threads = config_.compile.threads;
  options.cache = word2vec.cache;
  options.progress = [this](int64_t bytes, int64_t of) {
    line_.Show(
        absl::StrFormat("reading %.0f of %.0f MiB", MiB(bytes), MiB(of)));
  };
  const int64_t begin = NowNs();
  ASSIGN_OR_RETURN(corpus_, ReadCorpus(word2vec.corpus, options));
  read_seconds_ = Seconds(begin);
  line_.Clear();
  if (!corpus_.notice.empty()) Console::Notice(corpus_.notice);
  return absl::OkStatus();
}

absl::Status Word2vecCommand::Prepare() {
  RETURN_IF_ERROR(CreateDumpDir(config_.compile.dump_dir));
  memory_ =
      Word2vecTrainer::MemoryOf(config_.word2vec, config_.compile, corpus_);
  if (config_.json) {
    Console::Notice(MemoryText());
  } else {
    PrintPlan();
  }
  // The tokens are there already.
  RETURN_IF_ERROR(
      CheckMemory("word2vec: the tables", memory_.total() - memory_.tokens));
  Word2vecConfig word2vec = config_.word2vec;
  if (word2vec.max_words > 0) {
    word2vec.max_words = std::max<int64_t>(
        1, std::llround(static_cast<double>(word2vec.max_words) /
                        TextPerVocabulary()));
  }
  ASSIGN_OR_RETURN(trainer_,
                   Word2vecTrainer::Create(word2vec, corpus_, config_.epochs,
                                           config_.seed, config_.compile));
  if (config_.compile.threads > 1) {
    const absl::StatusOr<CoreLatency> latency =
        MeasureCoreLatency(config_.compile.threads, config_.compile.affinity);
    if (latency.ok()) {
      latency_ = *latency;
    } else {
      Console::Notice(absl::StrCat("how far apart cores are is not measured: ",
                                   latency.status().message()));
    }
  }
  if (config_.json) return absl::OkStatus();
  const Compiled& compiled = trainer_->compiled();
  console_.Print(absl::StrFormat("compiled in %.1f ms: %s\n", compiled.ms,
                                 compiled.executable->lowering()));
  if (latency_) console_.Print(absl::StrCat(ToString(*latency_), "\n"));
  if (config_.compile.threads > 1 && !config_.word2vec.deterministic) {
    console_.Print(
        "threads write the same tables without locks: a second run is not "
        "alike; --deterministic is\n");
  }
  console_.Print("epoch      loss        lr   seconds      words/s\n");
  console_.Flush();
  return absl::OkStatus();
}

void Word2vecCommand::PrintBeforeReading() {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(config_.word2vec.corpus, error);
  if (error) return;  // which reading explains
  const std::string memory = absl::StrFormat(
      "reading %.1f MiB: memory at most %.1f MiB for words, and some 60 bytes "
      "for a different word and thread",
      MiB(bytes), 4 * MiB(bytes));
  if (config_.json) {
    Console::Notice(memory);
    return;
  }
  console_.Print(absl::StrCat("onestep ", Version(), "\n",
                              FlagTable(ConfigOf(config_)), memory, "\n"));
  console_.Flush();
}

void Word2vecCommand::PrintPlan() {
  const Vocabulary& vocabulary = corpus_.vocabulary;
  const CorpusCounts& counts = corpus_.counts;
  console_.Print(absl::StrFormat(
      "read %d words, %d different ones, in %d lines, %.1f MiB, in %.2f s%s\n"
      "kept %d of %d words, %d of %d different ones\n"
      "%s\n",
      counts.tokens, counts.words, counts.lines, MiB(counts.bytes),
      read_seconds_, corpus_.from_cache ? ", from the cache" : "",
      vocabulary.total(), counts.tokens, vocabulary.size(), counts.words,
      MemoryText()));
  console_.Flush();
}

std::string Word2vecCommand::MemoryText() const {
  return absl::StrFormat(
      "memory: tables %.1f MiB, threads' rows %.1f, tokens %.1f, words %.1f, "
      "steps %.1f%s",
      MiB(memory_.tables), MiB(memory_.hot_rows), MiB(memory_.tokens),
      MiB(memory_.words), MiB(memory_.steps),
      memory_.deterministic == 0
          ? ""
          : absl::StrFormat(", and for --deterministic %.1f",
                            MiB(memory_.deterministic)));
}

absl::Status Word2vecCommand::CreateOutput() {
  RETURN_IF_ERROR(CreateOutputDir(config_.out));
  RETURN_IF_ERROR(
      WriteTextFile(OutPath("config.json"), JsonText(ConfigOf(config_), 2)));
  RETURN_IF_ERROR(
      WriteTextFile(OutPath("graph.txt"), GraphText(trainer_->compiled())));
  ASSIGN_OR_RETURN(log_, LineLog::Create(OutPath("log.jsonl")));
  return absl::OkStatus();
}

absl::Status Word2vecCommand::RunEpochs() {
  const int64_t run_begin = NowNs();
  for (int64_t epoch = 1; epoch <= config_.epochs; ++epoch) {
    const auto poll = [&](const TrainedCounts& counts, double lr) {
      const double seconds = Seconds(run_begin);
      const auto done = static_cast<double>(trainer_->run().words_done());
      const auto all = static_cast<double>(trainer_->run().words());
      if (done > 0) {
        const auto left = static_cast<int64_t>(seconds / done * (all - done));
        line_.Show(absl::StrFormat(
            "epoch %d/%d  %.0f %%  %.2f M words/s  loss %s  lr %.5f  ETA "
            "%d:%02d",
            epoch, config_.epochs, 100 * done / all,
            1e-6 * TextPerVocabulary() * done / seconds, LossText(counts), lr,
            left / 60, left % 60));
      }
      return PendingSignal() == 0;
    };
    const int64_t begin = NowNs();
    TrainedCounts counts;
    const absl::Status status = trainer_->RunEpoch(epoch, poll, counts);
    const double seconds = Seconds(begin);
    seconds_ += seconds;
    line_.Clear();
    if (!status.ok() && !absl::IsCancelled(status)) return status;
    done_.Add(counts);
    AfterEpoch(epoch, counts, seconds);
    RETURN_IF_ERROR(status);
    if (PendingSignal() != 0) return absl::CancelledError("stopped");
    if (trainer_->run().finished()) break;
  }
  return absl::OkStatus();
}

// The losses were finite; what the last steps wrote was not looked at yet.
absl::Status Word2vecCommand::CheckFinite() const {
  const VectorsView vectors = trainer_->Vectors();
  for (int64_t i = 0; i < vectors.size; ++i) {
    if (AllFinite(vectors.row(i), vectors.dim)) continue;
    return absl::OutOfRangeError(
        absl::StrCat("the vector of ", Quote(std::string(vectors.word(i))),
                     " is not finite: want a lower --lr"));
  }
  return absl::OkStatus();
}

void Word2vecCommand::AfterEpoch(int64_t epoch, const TrainedCounts& counts,
                                 double seconds) {
  const int64_t words = WordsOfText(counts.words);
  words_ += words;
  Json json;
  json["epoch"] = epoch;
  json["lr"] = AsWritten(trainer_->run().Rate());
  json.update(CountsJson(words, counts, seconds));
  epochs_.push_back(json);
  if (!config_.json) {
    console_.Print(absl::StrFormat("%5d  %8s  %8.5f  %8.3f  %11.0f\n", epoch,
                                   LossText(counts), trainer_->run().Rate(),
                                   seconds, WordsPerSecond(words, seconds)));
    console_.Flush();
  }
  // The vectors are worth more than the log: the run goes on.
  if (log_) log_status_.Update(log_->Append(JsonText(json)));
}

std::string Word2vecCommand::VectorsPath() const {
  switch (config_.word2vec.format) {
    case VectorsFormat::kText:
      return OutPath(kVectorsTextFile);
    case VectorsFormat::kSafetensors:
      return OutPath(kVectorsTensorFile);
    case VectorsFormat::kBinary:
      break;
  }
  return OutPath(kVectorsFile);
}

absl::Status Word2vecCommand::Save() {
  const VectorsView vectors = trainer_->Vectors();
  const std::string path = VectorsPath();
  RETURN_IF_ERROR(WriteVocabulary(VocabularyPath(path), vectors));
  switch (config_.word2vec.format) {
    case VectorsFormat::kText:
      return WriteVectorsText(path, vectors, config_.compile.threads);
    case VectorsFormat::kSafetensors:
      return WriteVectorsSafetensors(path, vectors);
    case VectorsFormat::kBinary:
      break;
  }
  return WriteVectorsBinary(path, vectors);
}

Json Word2vecCommand::MemoryJson() const {
  Json json;
  json["tables"] = memory_.tables;
  json["threads_rows"] = memory_.hot_rows;
  json["tokens"] = memory_.tokens;
  json["words"] = memory_.words;
  json["steps"] = memory_.steps;
  json["deterministic"] = memory_.deterministic;
  return json;
}

void Word2vecCommand::Report() {
  if (done_.pairs == 0) {
    Console::Notice(
        "no word had another near it: the vectors are as they were drawn; want "
        "a longer text, a lower --min-count or a higher --sample");
  }
  if (!config_.json) {
    console_.Print(absl::StrFormat(
        "%d words of the text in %.3f s: %.0f words/s; %d used, %d left out by "
        "--sample, %d not in the vocabulary; loss %s of %d pairs\n",
        words_, seconds_, WordsPerSecond(words_, seconds_), done_.used,
        done_.words - done_.used, words_ - done_.words, LossText(done_),
        done_.pairs));
    if (memory_.hot_rows > 0) {
      console_.Print(absl::StrFormat(
          "threads worked with their own frequent rows for %.0f %% of the "
          "words\n",
          100 * static_cast<double>(trainer_->words_with_copies()) /
              static_cast<double>(std::max<int64_t>(1, done_.words))));
    }
    if (!config_.out.empty()) {
      console_.Print(absl::StrCat("vectors: ", VectorsPath(), "\n"));
    }
    return;
  }
  const CorpusCounts& counts = corpus_.counts;
  Json json;
  json["config"] = ConfigOf(config_);
  json["counts"] = {{"bytes", counts.bytes},
                    {"lines", counts.lines},
                    {"words", counts.tokens},
                    {"different_words", counts.words},
                    {"vocabulary", corpus_.vocabulary.size()},
                    {"words_kept", corpus_.vocabulary.total()}};
  json["memory"] = MemoryJson();
  json["read_seconds"] = read_seconds_;
  json["compile_ms"] = trainer_->compiled().ms;
  json["lowering"] = trainer_->compiled().executable->lowering();
  json["core_latency_ns"] = nullptr;
  if (latency_) json["core_latency_ns"] = latency_->ns;
  json["epochs"] = epochs_;
  json["threads"] = config_.compile.threads;
  json.update(CountsJson(words_, done_, seconds_));
  json["words_with_own_rows"] = WordsOfText(trainer_->words_with_copies());
  console_.Print(absl::StrCat(JsonText(json, 2), "\n"));
}

absl::Status Word2vecCommand::Explain(const absl::Status& status) const {
  std::string message =
      absl::StrCat(PendingSignal() == SIGTERM ? "terminated by SIGTERM"
                                              : "interrupted by SIGINT",
                   " after ", words_, " of ",
                   WordsOfText(trainer_->run().words()), " words of the text");
  if (!config_.out.empty()) {
    absl::StrAppend(&message, "; the vectors are in ", VectorsPath());
  }
  return absl::Status(status.code(), message);
}

}  // namespace

absl::Status RunWord2vec(const Config& config, Console& console) {
  return Word2vecCommand(config, console).Run();
}

}  // namespace onestep
