// SPDX-License-Identifier: Apache-2.0
// The parts of cuda_api.h that need no CUDA.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/cuda/cuda_api.h"

namespace onestep {

const char* ToString(MathMode math) {
  switch (math) {
    case MathMode::kFp32:
      return "fp32";
    case MathMode::kTf32:
      return "tf32";
    case MathMode::kBf16:
      return "bf16";
  }
  return "?";
}

std::string CudaDevice::ToString() const {
  return absl::StrFormat("%s, %d SMs, sm_%d%d, %d GiB", name, multiprocessors,
                         compute_major, compute_minor, memory_bytes >> 30);
}

std::string CudaMatMul::ToString() const {
  std::string text = models > 0 ? absl::StrCat(models, "x ") : "";
  absl::StrAppend(&text, "matmul ", m, "x", n, "x", k, " ",
                  onestep::ToString(math));
  if (trans_a || trans_b) {
    absl::StrAppend(&text, " ", trans_a ? "t" : "n", trans_b ? "t" : "n");
  }
  std::string epilogue;
  for (const auto& [on, word] :
       {std::pair(relu, "_relu"), std::pair(mask_out, "_aux"),
        std::pair(mask_in, "_drelu"), std::pair(bias, "_bias"),
        std::pair(column_sums, "_bgrad")}) {
    if (on) epilogue += word;
  }
  if (!epilogue.empty()) absl::StrAppend(&text, " ", epilogue.substr(1));
  if (accumulate) text += " accumulate";
  return text;
}

}  // namespace onestep
