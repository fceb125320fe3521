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

// One launch of a GPU kernel, as plain data: what a launcher (kernels.h) makes
// and what becomes a node of a CUDA graph or a launch on a stream. Every kernel
// takes one struct, by value.
struct Launch {
  static constexpr int kMaxArgsBytes = 1024;

  const char* name = "";         // "GatherConvert<4>", as the compiler has it
  const void* kernel = nullptr;  // the host's handle of a __global__ function
  // Made by the host compiler for the emulator: runs one thread of the kernel.
  void (*emulated)(const void* kernel, const void* args) = nullptr;
  Dim grid, block;
  uint32_t cluster = 1;       // blocks, along x
  uint32_t shared_bytes = 0;  // dynamic
  // Calls dev::WaitForPrerequisites before it reads anything that an earlier
  // launch wrote, so that its edges may be programmatic ones.
  bool waits = false;
  uint32_t args_bytes = 0;
  alignas(16) unsigned char args[kMaxArgsBytes] = {};

  template <typename Args>
  void SetArgs(Args value) {
    static_assert(std::is_trivially_copyable_v<Args>);
    static_assert(sizeof(Args) <= kMaxArgsBytes);
    // What lies between the members could be taken for an address in use.
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&value);
#endif
    args_bytes = sizeof(Args);
    std::memcpy(args, &value, sizeof(Args));
  }
};

}  // namespace onestep

#endif  // ONESTEP_KERNELS_LAUNCH_H_
