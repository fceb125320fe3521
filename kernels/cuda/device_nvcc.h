// SPDX-License-Identifier: Apache-2.0
// The device layer of device.h for nvcc, sm_80 and later: PTX ISA 8.0. What
// needs sm_90 traps below it.
#ifndef ONESTEP_KERNELS_CUDA_DEVICE_NVCC_H_
#define ONESTEP_KERNELS_CUDA_DEVICE_NVCC_H_

#include <cstdint>
#include <cstring>

#include "kernels/launch.h"

#define ONESTEP_KERNEL(...) __global__ __launch_bounds__(__VA_ARGS__)
#define ONESTEP_DEVICE __device__ __forceinline__
#define ONESTEP_UNROLL _Pragma("unroll")

namespace onestep::dev {

ONESTEP_DEVICE Dim ThreadIndex() {
  return {threadIdx.x, threadIdx.y, threadIdx.z};
}
ONESTEP_DEVICE Dim BlockIndex() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
ONESTEP_DEVICE Dim BlockDim() { return {blockDim.x, blockDim.y, blockDim.z}; }
ONESTEP_DEVICE Dim GridDim() { return {gridDim.x, gridDim.y, gridDim.z}; }
ONESTEP_DEVICE uint32_t Lane() { return threadIdx.x % 32; }
ONESTEP_DEVICE uint32_t Warp() { return threadIdx.x / 32; }

ONESTEP_DEVICE unsigned char* Shared() {
  extern __shared__ __align__(128) unsigned char onestep_shared[];
  return onestep_shared;
}
ONESTEP_DEVICE uint32_t SharedAddress(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

ONESTEP_DEVICE void SyncBlock() { __syncthreads(); }
ONESTEP_DEVICE void SyncWarp() { __syncwarp(); }
template <typename T>
ONESTEP_DEVICE T ShuffleXor(T v, int mask) {
  return __shfl_xor_sync(0xffffffff, v, mask);
}
template <typename T>
ONESTEP_DEVICE T Shuffle(T v, int lane) {
  return __shfl_sync(0xffffffff, v, lane);
}
ONESTEP_DEVICE bool AnyInWarp(bool v) { return __any_sync(0xffffffff, v); }

ONESTEP_DEVICE uint64_t Nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
[[noreturn]] ONESTEP_DEVICE void Trap() {
  __trap();
  __builtin_unreachable();
}

// ---- clusters and transaction barriers -------------------------------------
struct alignas(8) Barrier {
  uint64_t state;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
inline constexpr bool kHasClusters = true;

ONESTEP_DEVICE uint32_t ClusterRank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
ONESTEP_DEVICE uint32_t ClusterSize() {
  uint32_t size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}
ONESTEP_DEVICE void SyncCluster() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n\t"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

ONESTEP_DEVICE void InitBarrier(Barrier* barrier, uint32_t arrivals) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(barrier)),
      "r"(arrivals)
      : "memory");
}
ONESTEP_DEVICE void FenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
ONESTEP_DEVICE void ArriveExpect(Barrier* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   SharedAddress(barrier)),
               "r"(bytes)
               : "memory");
}
ONESTEP_DEVICE bool TryWaitParity(Barrier* barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;"
      "\n\t"
      "selp.u32 %0, 1, 0, p;\n\t"
      "}"
      : "=r"(done)
      : "r"(SharedAddress(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}
ONESTEP_DEVICE bool WaitParity(Barrier* barrier, uint32_t parity,
                               uint64_t timeout_ns) {
  // The clock is slow to read, and most waits end in the first tries.
  constexpr int kTriesPerClock = 64;
  uint64_t begin = 0;
  while (true) {
#pragma unroll 1
    for (int i = 0; i < kTriesPerClock; ++i) {
      if (TryWaitParity(barrier, parity)) return true;
    }
    const uint64_t now = Nanoseconds();
    if (begin == 0) begin = now;
    if (now - begin > timeout_ns) return false;
  }
}
ONESTEP_DEVICE void FenceAsync() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Where `address` of this block is in block `rank` of the cluster.
ONESTEP_DEVICE uint32_t AddressInBlock(uint32_t address, uint32_t rank) {
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(there)
      : "r"(address), "r"(rank));
  return there;
}
ONESTEP_DEVICE void PushToBlock(void* to, const void* from, uint32_t bytes,
                                Barrier* barrier, uint32_t rank) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta"
      ".mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          AddressInBlock(SharedAddress(to), rank)),
      "r"(SharedAddress(from)), "r"(bytes),
      "r"(AddressInBlock(SharedAddress(barrier), rank))
      : "memory");
}
ONESTEP_DEVICE void BulkLoad(void* to_shared, const void* from_global,
                             uint32_t bytes, Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global"
      ".mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          SharedAddress(to_shared)),
      "l"(__cvta_generic_to_global(from_global)), "r"(bytes),
      "r"(SharedAddress(barrier))
      : "memory");
}

ONESTEP_DEVICE void WaitForPrerequisites() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
ONESTEP_DEVICE void TriggerDependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
#else
inline constexpr bool kHasClusters = false;

ONESTEP_DEVICE uint32_t ClusterRank() { return 0; }
ONESTEP_DEVICE uint32_t ClusterSize() { return 1; }
ONESTEP_DEVICE void SyncCluster() { Trap(); }
ONESTEP_DEVICE void InitBarrier(Barrier*, uint32_t) { Trap(); }
ONESTEP_DEVICE void FenceBarrierInit() { Trap(); }
ONESTEP_DEVICE void ArriveExpect(Barrier*, uint32_t) { Trap(); }
ONESTEP_DEVICE bool WaitParity(Barrier*, uint32_t, uint64_t) { Trap(); }
ONESTEP_DEVICE void FenceAsync() { Trap(); }
ONESTEP_DEVICE void PushToBlock(void*, const void*, uint32_t, Barrier*,
                                uint32_t) {
  Trap();
}
ONESTEP_DEVICE void BulkLoad(void*, const void*, uint32_t, Barrier*) { Trap(); }
// Every edge between launches is a full one there.
ONESTEP_DEVICE void WaitForPrerequisites() {}
ONESTEP_DEVICE void TriggerDependents() {}
#endif

// ---- memory that running blocks or the host share --------------------------
ONESTEP_DEVICE uint32_t AddAcqRel(uint32_t* p, uint32_t v) {
  uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(__cvta_generic_to_global(p)), "r"(v)
               : "memory");
  return old;
}
ONESTEP_DEVICE uint32_t LoadSystem(const uint32_t* p) {
  uint32_t v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];"
               : "=r"(v)
               : "l"(__cvta_generic_to_global(p))
               : "memory");
  return v;
}
ONESTEP_DEVICE void StoreSystem(uint32_t* p, uint32_t v) {
  asm volatile(
      "st.release.sys.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)),
      "r"(v)
      : "memory");
}

// ---- arithmetic ------------------------------------------------------------
ONESTEP_DEVICE void MmaBf16(float d[4], const uint32_t a[4],
                            const uint32_t b[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
ONESTEP_DEVICE uint32_t PackBf16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
ONESTEP_DEVICE float Bf16ToFloat(uint32_t bits) {
  return __uint_as_float(bits << 16);
}
// A pair of 0x4300 | byte: as bf16, 128 + byte below 128 and 2 byte from there
// on, so the byte is the smaller of that less 128 and of its half.
ONESTEP_DEVICE uint32_t MarkedBytesToBf16(uint32_t pair) {
  uint32_t less, half, bytes;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(less)
      : "r"(pair), "r"(0x3f803f80), "r"(0xc300c300));  // 1, -128
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(half)
      : "r"(pair), "r"(0x3f003f00), "r"(0x80008000));  // 1/2, -0
  asm("min.bf16x2 %0, %1, %2;" : "=r"(bytes) : "r"(less), "r"(half));
  return bytes;
}
ONESTEP_DEVICE uint32_t BytesToBf16(uint32_t low, uint32_t high, int i) {
  const uint32_t picked = __byte_perm(low, high, 0x0400 + 0x0101 * i);
  return MarkedBytesToBf16((picked & 0x00ff00ff) | 0x43004300);
}
ONESTEP_DEVICE uint32_t BytesToBf16(uint32_t word, int i) {
  return MarkedBytesToBf16(__byte_perm(word, 0x43, 0x4140 + 0x0101 * i));
}

ONESTEP_DEVICE float Exp(float v) { return expf(v); }
ONESTEP_DEVICE float Log(float v) { return logf(v); }
ONESTEP_DEVICE float Tanh(float v) { return tanhf(v); }
ONESTEP_DEVICE float Erf(float v) { return erff(v); }
ONESTEP_DEVICE float Sqrt(float v) { return sqrtf(v); }
ONESTEP_DEVICE float Fma(float a, float b, float c) { return fmaf(a, b, c); }
template <typename T>
ONESTEP_DEVICE T Max(T a, T b) {
  return a > b ? a : b;
}
template <typename T>
ONESTEP_DEVICE T Min(T a, T b) {
  return a < b ? a : b;
}
template <>
ONESTEP_DEVICE float Max(float a, float b) {
  return fmaxf(a, b);
}
template <>
ONESTEP_DEVICE float Min(float a, float b) {
  return fminf(a, b);
}

// ---- loads -----------------------------------------------------------------
// What the hardware loads at once, by size.
template <int kBytes>
struct Word;
template <>
struct Word<1> {
  using Type = unsigned char;
};
template <>
struct Word<2> {
  using Type = unsigned short;
};
template <>
struct Word<4> {
  using Type = unsigned int;
};
template <>
struct Word<8> {
  using Type = uint2;
};
template <>
struct Word<16> {
  using Type = uint4;
};

template <typename T>
ONESTEP_DEVICE T LoadReadOnly(const T* p) {
  using Raw = typename Word<sizeof(T)>::Type;
  const Raw raw = __ldg(reinterpret_cast<const Raw*>(p));
  T v;
  memcpy(&v, &raw, sizeof(T));
  return v;
}
template <typename T>
ONESTEP_DEVICE T LoadL2(const T* p) {
  using Raw = typename Word<sizeof(T)>::Type;
  const Raw raw = __ldcg(reinterpret_cast<const Raw*>(p));
  T v;
  memcpy(&v, &raw, sizeof(T));
  return v;
}

}  // namespace onestep::dev

#endif  // ONESTEP_KERNELS_CUDA_DEVICE_NVCC_H_
