// SPDX-License-Identifier: Apache-2.0
// What `trainer bench` might have measured, for tests of what it makes of it.
#ifndef ONESTEP_TESTS_TRAINER_MEASURE_MADE_BENCH_RUN_H_
#define ONESTEP_TESTS_TRAINER_MEASURE_MADE_BENCH_RUN_H_

#include <cstdint>
#include <utility>

#include "runtime/cpu/cpu_info.h"
#include "trainer/measure/bench_run.h"

namespace onestep {

inline Config MadeConfig() {
  Config config;
  config.verb = Verb::kBench;
  config.model.widths = {20, 16, 4};
  config.batches = {32};
  config.processes = 3;
  return config;
}

// Ten samples around `fused_us` and `single_us` in each start.
inline BenchRow MadeRow(int64_t batch, double fused_us, double single_us,
                        int starts = 3) {
  BenchRow row;
  row.batch = batch;
  row.peak_gflops = 100;
  row.interrupted = 1;
  for (const auto& [name, us] :
       {std::pair{"fused", fused_us}, std::pair{"single", single_us}}) {
    WayResult& way = row.ways.emplace_back();
    way.name = name;
    way.dispatches = 1;
    way.lowering = "by hand";
    for (int start = 0; start < starts; ++start) {
      way.compile_ms.push_back(2);
      way.first_step_ms.push_back(0.5);
      way.us.emplace_back();
      for (int i = 0; i < 10; ++i) way.us.back().push_back(us + us * 1e-3 * i);
    }
  }
  return row;
}

inline BenchRun MadeRun(double fused_us, double single_us, int starts = 3) {
  BenchRun run;
  run.rows = {MadeRow(32, fused_us, single_us, starts)};
  run.source = "made rows";
  run.density = 0.2;
  run.environment.cpu = CpuModelName();
  return run;
}

}  // namespace onestep

#endif  // ONESTEP_TESTS_TRAINER_MEASURE_MADE_BENCH_RUN_H_
