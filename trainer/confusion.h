// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_CONFUSION_H_
#define ONESTEP_TRAINER_CONFUSION_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace onestep {

// How often which class was taken for which.
class Confusion {
 public:
  explicit Confusion(int64_t classes)
      : classes_(classes), counts_(classes * classes), rows_(classes) {}

  // `predicted` is -1 for a row without a prediction: it counts as wrong.
  // REQUIRES: 0 <= actual < classes, -1 <= predicted < classes.
  void Add(int64_t actual, int64_t predicted) {
    ++rows_[actual];
    if (predicted < 0) {
      ++without_prediction_;
    } else {
      ++counts_[actual * classes_ + predicted];
    }
  }

  int64_t classes() const { return classes_; }
  int64_t count(int64_t actual, int64_t predicted) const {
    return counts_[actual * classes_ + predicted];
  }
  int64_t without_prediction() const { return without_prediction_; }
  int64_t RowsOf(int64_t actual) const { return rows_[actual]; }

  // Of the rows predicted as c, the share that are c; none without such rows.
  std::optional<double> Precision(int64_t c) const {
    int64_t predicted = 0;
    for (int64_t actual = 0; actual < classes_; ++actual) {
      predicted += count(actual, c);
    }
    return Share(count(c, c), predicted);
  }

  // Of the rows that are c, the share predicted as c; none without such rows.
  std::optional<double> Recall(int64_t c) const {
    return Share(count(c, c), rows_[c]);
  }

 private:
  static std::optional<double> Share(int64_t part, int64_t whole) {
    if (whole == 0) return std::nullopt;
    return static_cast<double>(part) / static_cast<double>(whole);
  }

  int64_t classes_;
  std::vector<int64_t> counts_;  // [actual, predicted]
  std::vector<int64_t> rows_;    // of each actual class
  int64_t without_prediction_ = 0;
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_CONFUSION_H_
