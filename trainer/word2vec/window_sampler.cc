// SPDX-License-Identifier: Apache-2.0
#include "trainer/word2vec/window_sampler.h"

#include <algorithm>

#include "runtime/base/status.h"

namespace onestep {
namespace {

// Words behind the window that are read ahead: a long sentence goes by in
// pieces.
constexpr int64_t kWordsAhead = 512;

// Words that are read for a block at most, where few of them are used: between
// blocks the rate falls and a run can be stopped.
constexpr int64_t kMostWords = 1 << 13;

// Uniform in [0, n), n < 2^32, from 32 random bits: off by n / 2^32 at most.
inline int64_t Below(uint32_t bits, int64_t n) {
  return static_cast<int64_t>((static_cast<uint64_t>(bits) * n) >> 32);
}

}  // namespace

int64_t SamplerSource::contexts() const {
  const int64_t all = 2 * config->window;
  if (config->cbow || config->hs || config->negatives.contexts == 0) return all;
  return std::min(all, config->negatives.contexts);
}

int64_t SamplerSource::outputs() const {
  return config->hs ? std::max(1, tree->longest()) : 1 + config->negative;
}

int64_t SamplerSource::steps_of_window() const {
  return (2 * config->window + contexts() - 1) / contexts();
}

WindowSampler::WindowSampler(const SamplerSource& source)
    : source_(source),
      window_(source.config->window),
      num_contexts_(source.contexts()),
      num_outputs_(source.outputs()),
      steps_of_window_(source.steps_of_window()) {}

void WindowSampler::Start(std::span<const int32_t> tokens,
                          const Random& random) {
  tokens_ = tokens;
  next_ = 0;
  random_ = random;
  words_.clear();
  centre_ = 0;
  sentence_ends_ = true;
}

// Drops what lies more than a window behind the centre and reads on: to the end
// of a sentence that has a centre left, beyond the window, or to the most words
// of a block.
void WindowSampler::ReadWords(StepBlock& block) {
  if (sentence_ends_) {
    words_.clear();
    centre_ = 0;
  } else {
    const int64_t gone = std::max<int64_t>(0, centre_ - window_);
    words_.erase(words_.begin(), words_.begin() + gone);
    centre_ -= gone;
  }
  const int64_t want = centre_ + window_ + kWordsAhead;
  sentence_ends_ = false;
  while (next_ < tokens_.size() && std::ssize(words_) < want &&
         block.words < kMostWords) {
    const int32_t word = tokens_[next_++];
    if (word < 0) {
      if (centre_ < std::ssize(words_)) {
        sentence_ends_ = true;
        break;
      }
      words_.clear();
      centre_ = 0;
      continue;
    }
    ++block.words;
    if (source_.keep[word] < static_cast<uint32_t>(random_.Next())) continue;
    words_.push_back(word);
    ++block.used;
  }
  if (next_ == tokens_.size()) sentence_ends_ = true;
}

bool WindowSampler::Fill(const RowMap& rows, StepBlock& block) {
  CHECK(block.capacity >= steps_of_window_);
  CHECK(block.num_contexts == num_contexts_);
  CHECK(block.num_outputs == num_outputs_);
  block.steps = block.words = block.used = block.pairs = 0;
  while (block.steps + steps_of_window_ <= block.capacity) {
    const int64_t size = std::ssize(words_);
    if (centre_ >= size || (!sentence_ends_ && centre_ + window_ >= size)) {
      if (centre_ >= size && next_ == tokens_.size()) break;
      if (block.words >= kMostWords) break;
      ReadWords(block);
      continue;
    }
    const int64_t span =
        window_ - Below(static_cast<uint32_t>(random_.Next()), window_);
    const int64_t first = std::max<int64_t>(0, centre_ - span);
    const int64_t last = std::min<int64_t>(size - 1, centre_ + span);
    if (first < last) AddWindow(rows, first, last, block);
    ++centre_;
  }
  return block.steps > 0 || block.words > 0;
}

void WindowSampler::AddWindow(const RowMap& rows, int64_t first, int64_t last,
                              StepBlock& block) {
  if (source_.config->cbow) {
    AddMean(rows, first, last, block);
    return;
  }
  const int64_t m = last - first;
  const int64_t groups = (m + num_contexts_ - 1) / num_contexts_;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t begin = m * g / groups, end = m * (g + 1) / groups;
    AddContexts(rows, first + begin, end - begin, block);
  }
}

// A step of `count` contexts, of which the i-th is words_[first + i], or the
// next one from the centre on.
void WindowSampler::AddContexts(const RowMap& rows, int64_t first,
                                int64_t count, StepBlock& block) {
  int32_t* const contexts = &block.contexts[block.steps * num_contexts_];
  float* const mask = &block.mask[block.steps * num_contexts_];
  for (int64_t i = 0; i < num_contexts_; ++i) {
    const int64_t at = first + i + (first + i >= centre_ ? 1 : 0);
    contexts[i] = i < count ? rows.In(words_[at]) : 0;
    mask[i] = i < count ? 1.0f : 0.0f;
  }
  block.pairs += count;
  AddOutputs(rows, block);
}

void WindowSampler::AddMean(const RowMap& rows, int64_t first, int64_t last,
                            StepBlock& block) {
  int32_t* const contexts = &block.contexts[block.steps * num_contexts_];
  float* const mean = &block.mask[block.steps * num_contexts_];
  float* const spread = &block.spread[block.steps * num_contexts_];
  const int64_t count = last - first;
  const float share = 1.0f / static_cast<float>(count);
  const bool exact = source_.config->cbow_gradient == CbowGradient::kExact;
  for (int64_t i = 0; i < num_contexts_; ++i) {
    const int64_t at = first + i + (first + i >= centre_ ? 1 : 0);
    contexts[i] = i < count ? rows.In(words_[at]) : 0;
    mean[i] = i < count ? share : 0.0f;
    spread[i] = exact ? mean[i] : i < count ? 1.0f : 0.0f;
  }
  ++block.pairs;
  AddOutputs(rows, block);
}

// The centre and its negatives, or its path from the root; ends the step.
void WindowSampler::AddOutputs(const RowMap& rows, StepBlock& block) {
  const int32_t centre = words_[centre_];
  int32_t* const outputs = &block.outputs[block.steps * num_outputs_];
  float* const weights = &block.weights[block.steps * num_outputs_];
  block.centres[block.steps++] = centre;
  if (source_.config->hs) {
    float* const labels = &block.labels[(block.steps - 1) * num_outputs_];
    const int32_t root = source_.tree->words() - 2;
    std::fill_n(outputs, num_outputs_, 0);
    std::fill_n(weights, num_outputs_, 0.0f);
    source_.tree->ForEachNode(centre, [&](int i, int32_t node, int code) {
      outputs[i] = rows.Out(root - node);  // the most frequent ones first
      weights[i] = 1;
      labels[i] = static_cast<float>(1 - code);
    });
    return;
  }
  outputs[0] = rows.Out(centre);
  for (int64_t k = 1; k < num_outputs_; ++k) {
    int32_t word = source_.negatives->Draw(random_.Next());
    if (rows.classes > 1 && word >= rows.hot) {
      const int32_t other = word - word % rows.classes + rows.own_class;
      if (other < std::ssize(source_.keep)) word = other;
    }
    outputs[k] = rows.Out(word);
    weights[k] = static_cast<float>(word != centre);
  }
}

}  // namespace onestep
