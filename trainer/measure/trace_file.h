// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_MEASURE_TRACE_FILE_H_
#define ONESTEP_TRAINER_MEASURE_TRACE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/compiler.h"
#include "nlohmann/json.hpp"

namespace onestep {

// A timeline in the JSON trace event format, as ui.perfetto.dev and
// chrome://tracing read it: a row for the program, and one per worker, or for
// the stream of a GPU. Slices of a row nest or follow each other. Times are by
// NowNs; in the file they are microseconds from the earliest on.
class TraceFile {
 public:
  // A slice in the program's row.
  void AddSpan(const std::string& name, int64_t begin_ns, int64_t end_ns);

  // The passes and the lowering, within a slice called `name`.
  void AddCompile(const std::string& name, const Compiled& compiled);

  // The first `most` steps of `traces`, which count from 1, with the calls
  // within them and the forks and joins within those. `way` tells them from
  // other steps in the file; "": there are none. REQUIRES: of runs that did not
  // fail.
  void AddSteps(const Compiled& compiled, const std::vector<StepTrace>& traces,
                int64_t most, const std::string& way = "");

  nlohmann::ordered_json ToJson() const;
  // FailedPrecondition "cannot write FILE: <reason>".
  absl::Status Write(const std::string& file) const;

 private:
  struct Slice {
    int row = 0;  // 0: the program's; 1 + w: worker w's
    std::string name, category;
    int64_t begin_ns = 0, end_ns = 0;
    nlohmann::ordered_json args;
  };
  void AddCalls(const std::vector<StepInfo>& steps,
                const StepTrace::Worker& worker, int row, int64_t first_step,
                int64_t count, const std::string& way);

  std::vector<Slice> slices_;
  std::vector<std::string> rows_ = {"program"};
};

}  // namespace onestep

#endif  // ONESTEP_TRAINER_MEASURE_TRACE_FILE_H_
