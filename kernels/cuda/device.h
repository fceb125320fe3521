// SPDX-License-Identifier: Apache-2.0
// The thin device layer that every kernel of kernels/cuda is written against.
// nvcc compiles it to PTX (device_nvcc.h); g++ compiles the same kernels
// against tests/cuda_emulator, which runs every thread as a fiber: its build
// includes device_emulated.h before anything else.
//
// A kernel is a function template of one struct argument:
//
//   template <int kWidth>
//   ONESTEP_KERNEL(256) void Scale(ScaleArgs args) { ... }
//
// and its launcher, in the family's .cu file,
//
//   Launch launch = ONESTEP_LAUNCH(Scale<4>, args);   // sets name, kernel,
//   args launch.grid.x = ...; launch.block.x = 256;
//
// Rules, so that both compilers mean the same: dynamic shared memory only
// (dev::Shared), no static __shared__, no globals, no CUDA built-in names, no
// float atomics, no assumption on the order of blocks or warps; every wait on
// another thread is a dev:: call.
#ifndef ONESTEP_KERNELS_CUDA_DEVICE_H_
#define ONESTEP_KERNELS_CUDA_DEVICE_H_

#include <cstdint>

#include "kernels/launch.h"

// What each of the two headers below defines; ONESTEP_LAUNCH, Vec and LoadVec
// are the same for both and follow them:
//
//   ONESTEP_KERNEL(max_threads)    marks a kernel: __global__, launch bounds;
//       (max_threads, 1): registers for one block a multiprocessor
//   ONESTEP_DEVICE                 marks a function kernels call: inlined
//   ONESTEP_UNROLL                 before a for: unrolled
//   ONESTEP_LAUNCH(kernel, args)   a Launch with name, kernel and args set
//
// namespace onestep::dev:
//   Dim ThreadIndex(), BlockIndex(), BlockDim(), GridDim();
//   uint32_t Lane(), Warp();             // of a 1-d block
//   unsigned char* Shared();             // dynamic, 128-byte aligned
//   void SyncBlock();                    // all threads of the block
//   void SyncWarp();
//   T ShuffleXor(T v, int mask);         // T: float, int32_t, uint32_t
//   T Shuffle(T v, int lane);            // whole warps only
//   bool AnyInWarp(bool)
//
//   // Blocks of a cluster (sm_90).
//   uint32_t ClusterRank(), ClusterSize();
//   void SyncCluster();                  // release, acquire
//
//   // Transaction barriers in shared memory (mbarrier) and bulk copies.
//   struct Barrier;                      // 8 bytes, in shared memory
//   void InitBarrier(Barrier*, uint32_t arrivals);   // one thread
//   void FenceBarrierInit();             // then SyncCluster or SyncBlock
//   // One arrival that also announces `bytes` to come in this phase.
//   void ArriveExpect(Barrier*, uint32_t bytes);
//   // Waits for the end of the phase of this parity (0 first); false: it took
//   // longer than `timeout_ns`.
//   bool WaitParity(Barrier*, uint32_t parity, uint64_t timeout_ns);
//   // Makes this thread's ordinary writes to shared memory visible to bulk
//   // copies that are issued after the next SyncBlock.
//   void FenceAsync();
//   // One thread: copies bytes (multiple of 16, addresses too) to the same
//   // address `to` of block `rank`, and completes them on its `barrier`.
//   void PushToBlock(void* to, const void* from, uint32_t bytes,
//                    Barrier* barrier, uint32_t rank);
//   // One thread: global to own shared memory, likewise.
//   void BulkLoad(void* to_shared, const void* from_global, uint32_t bytes,
//                 Barrier* barrier);
//
//   // Global memory shared by running blocks, or with the host (pinned).
//   uint32_t AddAcqRel(uint32_t*, uint32_t);  // device scope; the old value
//   uint32_t LoadSystem(const uint32_t*);            // relaxed, host-visible
//   void StoreSystem(uint32_t*, uint32_t);           // release, host-visible
//
//   uint64_t Nanoseconds();              // %globaltimer
//   [[noreturn]] void Trap();
//
//   // A launch that may start before its prerequisites are done
//   (Launch.waits). void WaitForPrerequisites();         // griddepcontrol.wait
//   void TriggerDependents();            // griddepcontrol.launch_dependents
//
//   // d[16,8] += a[16,16] b[16,8], bf16 products, f32 sums, one warp: the
//   // fragments of mma.sync.m16n8k16 (PTX ISA): with g = lane / 4, t = lane %
//   4
//   //   a[0] = A[g][2t..], a[1] = A[g+8][2t..], a[2] = A[g][2t+8..],
//   //   a[3] = A[g+8][2t+8..]; b[0] = B[2t..][g], b[1] = B[2t+8..][g];
//   //   d[0..1] = D[g][2t..], d[2..3] = D[g+8][2t..]; low half: even index.
//   void MmaBf16(float d[4], const uint32_t a[4], const uint32_t b[2]);
//   uint32_t PackBf16(float low, float high);   // rounded to nearest even
//   float Bf16ToFloat(uint32_t bits);           // of the low half
//   // Bytes i and i + 1 of a word, or byte i of two, as numbers, exactly.
//   uint32_t BytesToBf16(uint32_t word, int i);
//   uint32_t BytesToBf16(uint32_t low, uint32_t high, int i);
//
//   // Of 1, 2, 4, 8 or 16 bytes, aligned to that.
//   T LoadReadOnly(const T*);  // no thread writes it while the kernel runs
//   T LoadL2(const T*);        // past the first-level cache
//
//   // Aligned groups, moved by one load or store: Vec<float, 4> and its like.
//   template <typename T, int N> struct alignas(sizeof(T) * N) Vec { T v[N]; };
//   Vec<T, N> LoadVec<N>(const T*);      // LoadReadOnly
//
//   float Exp(float), Log(float), Tanh(float), Erf(float), Sqrt(float),
//   Fma(a, b, c), Max, Min: fp32-accurate, no fast-math.
//   constexpr bool kHasClusters          // false below sm_90: kernels that
//                                        // need them compile to Trap there
#ifdef __CUDACC__
#include "kernels/cuda/device_nvcc.h"
#elif !defined(ONESTEP_KERNEL)
#error "want nvcc, or -include tests/cuda_emulator/device_emulated.h"
#endif

// A kernel with a comma goes in parentheses: ONESTEP_LAUNCH((Scale<4, 2>), a).
#define ONESTEP_LAUNCH(kernel, args)                                       \
  ::onestep::dev::MakeLaunch(                                              \
      [] {                                                                 \
        static constexpr auto kName = ::onestep::dev::KernelName(#kernel); \
        return kName.text;                                                 \
      }(),                                                                 \
      &kernel, args)

namespace onestep::dev {

template <typename T, int N>
struct alignas(sizeof(T) * N) Vec {
  T v[N];
};

template <int N, typename T>
ONESTEP_DEVICE Vec<T, N> LoadVec(const T* p) {
  return LoadReadOnly(reinterpret_cast<const Vec<T, N>*>(p));
}

// ---- on the host -----------------------------------------------------------
template <int N>
struct FixedText {
  char text[N] = {};
};

// The kernel's name as it was written, without blanks and outer parentheses.
template <int N>
constexpr FixedText<N> KernelName(const char (&written)[N]) {
  FixedText<N> name;
  const bool parentheses = written[0] == '(';
  int length = 0;
  for (int i = parentheses; i < N - 1 - parentheses; ++i) {
    if (written[i] != ' ') name.text[length++] = written[i];
  }
  return name;
}

template <typename Args>
Launch MakeLaunch(const char* name, void (*kernel)(Args), const Args& args) {
  Launch launch;
  launch.name = name;
  launch.kernel = reinterpret_cast<const void*>(kernel);
#ifndef __CUDACC__
  launch.emulated = &RunEmulated<Args>;
#endif
  launch.SetArgs(args);
  return launch;
}

}  // namespace onestep::dev

#endif  // ONESTEP_KERNELS_CUDA_DEVICE_H_
