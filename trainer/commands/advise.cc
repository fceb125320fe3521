// SPDX-License-Identifier: Apache-2.0
#include "trainer/measure/advise.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "trainer/commands/commands.h"
#include "trainer/interrupt.h"
#include "trainer/json_text.h"
#include "trainer/status_line.h"

namespace onestep {

absl::Status RunAdvise(const Config& config, Console& console) {
  const bool batch_given = std::any_of(
      config.arguments.begin(), config.arguments.end(),
      [](const std::string& argument) {
        return argument == "--batch" || absl::StartsWith(argument, "--batch=");
      });
  CatchSignals();
  const StatusLine line("advise");
  ASSIGN_OR_RETURN(
      const Advice advice,
      Advise(config, batch_given,
             [&line](const std::string& text) { line.Show(text); }));
  line.Clear();
  console.Print(config.json
                    ? absl::StrCat(JsonText(ToJson(config, advice), 2), "\n")
                    : ToText(config, advice));
  return absl::OkStatus();
}

}  // namespace onestep
