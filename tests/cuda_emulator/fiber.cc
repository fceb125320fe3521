// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace onestep {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr size_t kStackBytes = 128 << 10;
#else
constexpr size_t kStackBytes = 64 << 10;
#endif
// Stacks a whole number of pages apart would share few sets of the caches.
constexpr size_t kStackStride = kStackBytes + 17 * 64;
constexpr uint64_t kCanary = 0x5ca1ab1e0ddba115;

FiberPool* current_pool = nullptr;

#ifdef __x86_64__
// Saves the registers a call preserves, puts the stack pointer in *from, and
// goes on where `to` was saved.
extern "C" void onestep_switch_stack(void** from, void* to);
asm(R"(
.text
.type onestep_switch_stack, @function
onestep_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size onestep_switch_stack, . - onestep_switch_stack
)");

void* MakeContext(unsigned char* stack, void (*main)()) {
  auto top = reinterpret_cast<uintptr_t>(stack + kStackBytes) & ~uintptr_t{15};
  auto** slot = reinterpret_cast<void**>(top);
  *--slot = nullptr;  // main's return address
  *--slot = reinterpret_cast<void*>(main);
  for (int saved = 0; saved < 6; ++saved) *--slot = nullptr;
  return slot;
}

void SwitchContext(void** from, void* to) { onestep_switch_stack(from, to); }
#else
// The context lies at the low end of the stack, past the canary.
void* MakeContext(unsigned char* stack, void (*main)()) {
  auto* context = reinterpret_cast<ucontext_t*>(stack + 64);
  getcontext(context);
  context->uc_stack.ss_sp = stack + 64 + sizeof(ucontext_t);
  context->uc_stack.ss_size = kStackBytes - 64 - sizeof(ucontext_t);
  context->uc_link = nullptr;
  makecontext(context, main, 0);
  return context;
}

void SwitchContext(void** from, void* to) {
  static ucontext_t scheduler;
  if (*from == nullptr) *from = &scheduler;
  swapcontext(static_cast<ucontext_t*>(*from), static_cast<ucontext_t*>(to));
}
#endif

}  // namespace

FiberPool::~FiberPool() {
  if (stacks_ != nullptr) munmap(stacks_, num_stacks_ * kStackStride);
}

unsigned char* FiberPool::Stack(int fiber) const {
  return stacks_ + fiber * kStackStride;
}

void FiberPool::Reset(int size, Entry entry) {
  if (size > num_stacks_) {
    if (stacks_ != nullptr) munmap(stacks_, num_stacks_ * kStackStride);
    void* memory = mmap(nullptr, size * kStackStride, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("mmap of the fibers' stacks");
      std::abort();
    }
    stacks_ = static_cast<unsigned char*>(memory);
    num_stacks_ = size;
  }
#ifdef __SANITIZE_ADDRESS__
  // Frames that never returned left their poison.
  if (suspended_ > 0) {
    ASAN_UNPOISON_MEMORY_REGION(stacks_, num_stacks_ * kStackStride);
  }
#endif
  entry_ = entry;
  suspended_ = 0;
  fibers_.assign(size, {});
}

void FiberPool::Main() {
  FiberPool* pool = current_pool;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &pool->scheduler_stack_,
                                  &pool->scheduler_stack_bytes_);
#endif
  pool->entry_(pool->running_);
  --pool->suspended_;
  pool->SwitchToScheduler(/*ends=*/true);
  std::abort();  // an ended fiber was resumed
}

void FiberPool::Resume(int fiber) {
  Fiber& next = fibers_[fiber];
  if (next.context == nullptr) {
    std::memcpy(Stack(fiber), &kCanary, sizeof(kCanary));
    next.context = MakeContext(Stack(fiber), &Main);
    ++suspended_;
  }
  current_pool = this;
  running_ = fiber;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&scheduler_.fake_stack, Stack(fiber),
                                 kStackBytes);
#endif
  SwitchContext(&scheduler_.context, next.context);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(scheduler_.fake_stack, nullptr, nullptr);
#endif
  running_ = -1;
}

void FiberPool::Suspend() { SwitchToScheduler(/*ends=*/false); }

void FiberPool::SwitchToScheduler([[maybe_unused]] bool ends) {
  Fiber& self = fibers_[running_];
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(ends ? nullptr : &self.fake_stack,
                                 scheduler_stack_, scheduler_stack_bytes_);
#endif
  SwitchContext(&self.context, scheduler_.context);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(self.fake_stack, &scheduler_stack_,
                                  &scheduler_stack_bytes_);
#endif
}

bool FiberPool::StackOverflowed() const {
  for (size_t fiber = 0; fiber < fibers_.size(); ++fiber) {
    if (fibers_[fiber].context != nullptr &&
        std::memcmp(Stack(fiber), &kCanary, sizeof(kCanary)) != 0) {
      return true;
    }
  }
  return false;
}

}  // namespace onestep
