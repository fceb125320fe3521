// SPDX-License-Identifier: Apache-2.0
#ifndef ONESTEP_KERNELS_LAUNCH_H_
#define ONESTEP_KERNELS_LAUNCH_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace onestep {

struct Dim {
  uint32_t x = 1, y = 1, z = 1;
  int64_t size() const { return int64_t{x} * y * z; }
};

// One launch of a GPU kernel as plain data. A launcher (kernels.h) makes it,
// and the runtime turns it into a node of a CUDA graph or a launch on a stream.
// Every kernel takes one argument: a struct, by value.
struct Launch {
  static constexpr int kMaxArgsBytes = 1024;

  const char* name = "";         // "GatherConvert<4>": the compiler's name
  const void* kernel = nullptr;  // host handle of the __global__ function
  // For the emulator: the host-compiled function that runs one thread of the
  // kernel.
  void (*emulated)(const void* kernel, const void* args) = nullptr;
  Dim grid, block;
  uint32_t cluster = 1;       // number of blocks per cluster, along x
  uint32_t shared_bytes = 0;  // dynamic shared memory per block
  // The kernel calls dev::WaitForPrerequisites before it reads anything that an
  // earlier launch wrote, so that programmatic dependent launch is allowed.
  bool waits = false;
  uint32_t args_bytes = 0;
  alignas(16) unsigned char args[kMaxArgsBytes] = {};

  template <typename Args>
  void SetArgs(Args value) {
    static_assert(std::is_trivially_copyable_v<Args>);
    static_assert(sizeof(Args) <= kMaxArgsBytes);
    // Stale padding bytes could be mistaken for a device address in use.
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&value);
#endif
    args_bytes = sizeof(Args);
    std::memcpy(args, &value, sizeof(Args));
  }
};

}  // namespace onestep

#endif  // ONESTEP_KERNELS_LAUNCH_H_
