// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_TRAINER_BIND_H_
#define ONESTEP_TRAINER_BIND_H_

#include <vector>

#include "absl/status/status.h"
#include "runtime/base/executable.h"
#include "runtime/base/status.h"
#include "trainer/data/dataset.h"
#include "trainer/model.h"

namespace onestep {

// Binds inputs images and labels. Inputs are only read, whatever Bind's
// signature allows.
inline absl::Status BindData(Executable& executable, const Dataset& data) {
  RETURN_IF_ERROR(
      executable.Bind("images", const_cast<uint8_t*>(data.images.data())));
  return executable.Bind("labels", const_cast<int32_t*>(data.labels.data()));
}

// Binds params, or optimizer state, by name.
inline absl::Status BindTensors(Executable& executable,
                                std::vector<Tensor>& tensors) {
  for (Tensor& tensor : tensors) {
    RETURN_IF_ERROR(executable.Bind(tensor.name, tensor.data.data()));
  }
  return absl::OkStatus();
}

}  // namespace onestep

#endif  // ONESTEP_TRAINER_BIND_H_
