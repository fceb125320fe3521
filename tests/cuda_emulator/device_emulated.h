// SPDX-License-Identifier: Apache-2.0
// The device layer of kernels/cuda/device.h on the CPU: included before
// anything else when g++ compiles a .cu file. What waits for other threads is
// in emulator.cc; emulator.h says what is emulated how.
#ifndef ONESTEP_TESTS_CUDA_EMULATOR_DEVICE_EMULATED_H_
#define ONESTEP_TESTS_CUDA_EMULATOR_DEVICE_EMULATED_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/launch.h"

// An attribute of a function template cannot be asked for, but this one leaves
// one byte of nop per warp at the kernel's entry (g++): the bound, for Emulate.
#define ONESTEP_KERNEL(max_threads, ...) \
  __attribute__((patchable_function_entry(((max_threads) + 31) / 32, 0)))
#define ONESTEP_DEVICE inline
#define ONESTEP_UNROLL

namespace onestep::dev {

inline constexpr bool kHasClusters = true;

// What a thread knows of itself.
struct EmulatedThread {
  Dim thread, block, block_dim, grid_dim;
  uint32_t linear = 0;  // in its block
  uint32_t cluster_rank = 0, cluster_size = 1;
  unsigned char* shared = nullptr;
};
// Of the fiber that runs.
inline const EmulatedThread* emulated_thread = nullptr;

inline Dim ThreadIndex() { return emulated_thread->thread; }
inline Dim BlockIndex() { return emulated_thread->block; }
inline Dim BlockDim() { return emulated_thread->block_dim; }
inline Dim GridDim() { return emulated_thread->grid_dim; }
inline uint32_t Lane() { return emulated_thread->linear % 32; }
inline uint32_t Warp() { return emulated_thread->linear / 32; }
inline unsigned char* Shared() { return emulated_thread->shared; }
inline uint32_t ClusterRank() { return emulated_thread->cluster_rank; }
inline uint32_t ClusterSize() { return emulated_thread->cluster_size; }

void SyncBlock();
void SyncWarp();
uint32_t ShuffleXorBits(uint32_t v, int mask);
uint32_t ShuffleBits(uint32_t v, int lane);
template <typename T>
T ShuffleXor(T v, int mask) {
  return std::bit_cast<T>(ShuffleXorBits(std::bit_cast<uint32_t>(v), mask));
}
template <typename T>
T Shuffle(T v, int lane) {
  return std::bit_cast<T>(ShuffleBits(std::bit_cast<uint32_t>(v), lane));
}
bool AnyInWarp(bool v);

void SyncCluster();

// The state of an mbarrier (PTX ISA, "Parallel Synchronization and
// Communication Instructions: mbarrier"), and a mark that it was initialised.
struct alignas(8) Barrier {
  uint64_t expected : 20;  // arrivals of a phase
  uint64_t pending : 20;   // arrivals still to come in this one
  int64_t bytes : 21;      // announced, less those that came
  uint64_t phase : 1;
  uint64_t mark : 2;
};
static_assert(sizeof(Barrier) == 8);

void InitBarrier(Barrier* barrier, uint32_t arrivals);
void FenceBarrierInit();
void ArriveExpect(Barrier* barrier, uint32_t bytes);
bool WaitParity(Barrier* barrier, uint32_t parity, uint64_t timeout_ns);
void FenceAsync();
void PushToBlock(void* to, const void* from, uint32_t bytes, Barrier* barrier,
                 uint32_t rank);
void BulkLoad(void* to_shared, const void* from_global, uint32_t bytes,
              Barrier* barrier);

uint32_t AddAcqRel(uint32_t* p, uint32_t v);
uint32_t LoadSystem(const uint32_t* p);
void StoreSystem(uint32_t* p, uint32_t v);

uint64_t Nanoseconds();
[[noreturn]] void Trap();
void WaitForPrerequisites();
void TriggerDependents();

void MmaBf16(float d[4], const uint32_t a[4], const uint32_t b[2]);

inline uint32_t Bf16Bits(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  if (v != v) return 0x7fff;  // as cvt.rn.bf16x2.f32 has it
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
inline uint32_t PackBf16(float low, float high) {
  return Bf16Bits(low) | Bf16Bits(high) << 16;
}
inline float Bf16ToFloat(uint32_t bits) {
  return std::bit_cast<float>(bits << 16);
}
inline uint32_t BytesToBf16(uint32_t low, uint32_t high, int i) {
  return PackBf16(static_cast<float>((low >> (8 * i)) & 0xff),
                  static_cast<float>((high >> (8 * i)) & 0xff));
}
inline uint32_t BytesToBf16(uint32_t word, int i) {
  return BytesToBf16(word, word >> 8, i);
}

void CheckAligned(const void* p, size_t alignment);
template <typename T>
T LoadReadOnly(const T* p) {
  static_assert(std::has_single_bit(sizeof(T)) && sizeof(T) <= 16);
  CheckAligned(p, alignof(T));
  return *p;
}
template <typename T>
T LoadL2(const T* p) {
  return LoadReadOnly(p);
}

inline float Exp(float v) { return std::exp(v); }
inline float Log(float v) { return std::log(v); }
inline float Tanh(float v) { return std::tanh(v); }
inline float Erf(float v) { return std::erf(v); }
inline float Sqrt(float v) { return std::sqrt(v); }
inline float Fma(float a, float b, float c) { return std::fma(a, b, c); }
// As fmaxf: the other one where one is not a number.
template <typename T>
T Max(T a, T b) {
  return a > b || b != b ? a : b;
}
template <typename T>
T Min(T a, T b) {
  return a < b || b != b ? a : b;
}

template <typename Args>
void RunEmulated(const void* kernel, const void* args) {
  Args copy;
  std::memcpy(&copy, args, sizeof(Args));
  reinterpret_cast<void (*)(Args)>(const_cast<void*>(kernel))(copy);
}

}  // namespace onestep::dev

#endif  // ONESTEP_TESTS_CUDA_EMULATOR_DEVICE_EMULATED_H_
