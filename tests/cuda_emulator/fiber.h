// SPDX-License-Identifier: Apache-2.0
// Functions with stacks of their own that hand the processor to one another:
// how the emulator runs the threads of a kernel on one thread of the CPU.
// Not thread-safe. Knows AddressSanitizer.
#ifndef ONESTEP_TESTS_CUDA_EMULATOR_FIBER_H_
#define ONESTEP_TESTS_CUDA_EMULATOR_FIBER_H_

#include <cstddef>
#include <vector>

namespace onestep {

class FiberPool {
 public:
  using Entry = void (*)(int fiber);

  FiberPool() = default;
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;
  ~FiberPool();

  // Makes fibers 0 .. size-1, each of which runs entry(its number) when it is
  // first resumed. Fibers from before are forgotten wherever they are: their
  // stacks are used again, without a destructor run.
  void Reset(int size, Entry entry);

  // Runs the fiber until it suspends or its entry returns. Not from a fiber.
  void Resume(int fiber);
  // Back to who resumed this fiber.
  void Suspend();

  // Some fiber wrote to the last bytes of its stack, so probably past it.
  bool StackOverflowed() const;

 private:
  struct Fiber {
    void* context = nullptr;     // where it suspended
    void* fake_stack = nullptr;  // AddressSanitizer's
  };

  unsigned char* Stack(int fiber) const;
  [[noreturn]] static void Main();
  void SwitchToScheduler(bool ends);

  Entry entry_ = nullptr;
  std::vector<Fiber> fibers_;
  int running_ = -1;
  int suspended_ = 0;  // began and did not end
  Fiber scheduler_;
  // Only AddressSanitizer asks for them.
  [[maybe_unused]] const void* scheduler_stack_ = nullptr;
  [[maybe_unused]] size_t scheduler_stack_bytes_ = 0;
  unsigned char* stacks_ = nullptr;
  int num_stacks_ = 0;
};

}  // namespace onestep

#endif  // ONESTEP_TESTS_CUDA_EMULATOR_FIBER_H_
