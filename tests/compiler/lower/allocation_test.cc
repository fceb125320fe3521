// SPDX-License-Identifier: Apache-2.0
// A step creates no primitive and our code allocates nothing: every call of the
// C library's allocator and of dnnl_primitive_create is counted here, apart
// from the allocations inside dnnl_primitive_execute. Not built with
// sanitizers, which bring their own allocator.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>

#include "compiler/compiler.h"
#include "tests/status_matchers.h"
#include "trainer/model.h"

namespace {
std::atomic<bool> counting{false};
std::atomic<bool> in_library{false};
std::atomic<int> allocations{0};          // ours
std::atomic<int> library_allocations{0};  // inside dnnl_primitive_execute
std::atomic<int> primitives{0};
void Count() {
  if (!counting.load(std::memory_order_relaxed)) return;
  ++(in_library.load(std::memory_order_relaxed) ? library_allocations
                                                : allocations);
}
}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t n) {
  Count();
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
  Count();
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t n) {
  Count();
  return __libc_realloc(p, n);
}
void* aligned_alloc(size_t alignment, size_t n) {
  Count();
  return __libc_memalign(alignment, n);
}
int posix_memalign(void** p, size_t alignment, size_t n) {
  Count();
  *p = __libc_memalign(alignment, n);
  return *p == nullptr ? ENOMEM : 0;
}

dnnl_status_t dnnl_primitive_create(dnnl_primitive_t* primitive,
                                    const_dnnl_primitive_desc_t desc) {
  ++primitives;
  static const auto next = reinterpret_cast<decltype(&dnnl_primitive_create)>(
      dlsym(RTLD_NEXT, "dnnl_primitive_create"));
  return next(primitive, desc);
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive,
                                     dnnl_stream_t stream, int nargs,
                                     const dnnl_exec_arg_t* args) {
  static const auto next = reinterpret_cast<decltype(&dnnl_primitive_execute)>(
      dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  in_library = true;
  const dnnl_status_t status = next(primitive, stream, nargs, args);
  in_library = false;
  return status;
}
}

namespace onestep {
namespace {

// A compiled train step with everything bound.
struct Step {
  Compiled compiled;
  std::vector<Tensor> params, state;
  std::vector<uint8_t> images;
  std::vector<int32_t> labels, indices;
  std::vector<float> lr;
  float count = 1;

  Executable& executable() { return *compiled.executable; }
};

Step MakeStep(const CompileOptions& options, OptimizerKind kind) {
  constexpr int64_t kRows = 64, kBatch = 8;
  ModelSpec model;
  model.widths = {20, 9, 5};
  OptimizerSpec optimizer;
  optimizer.kind = kind;
  Step step;
  step.compiled =
      Compile(*BuildTrainStep(model, optimizer, kRows, kBatch), options)
          .value();
  step.params = InitParams(model, Init::kHe, 1).value();
  step.state = InitOptimizerState(model, optimizer).value();
  const int64_t models = std::max<int64_t>(1, options.vectorize.models);
  for (std::vector<Tensor>* tensors : {&step.params, &step.state}) {
    for (Tensor& t : *tensors) {
      if (models > 1) t.data = *Buffer::Create(models * t.data.bytes());
    }
  }
  step.lr.assign(models, 0.01f);
  step.images.assign(kRows * 20, 7);
  step.labels.assign(kRows, 3);
  step.indices.resize(kBatch);
  for (int i = 0; i < kBatch; ++i) step.indices[i] = i * 5;
  return step;
}

void BindAll(Step& step) {
  Executable& e = step.executable();
  for (std::vector<Tensor>* tensors : {&step.params, &step.state}) {
    for (Tensor& t : *tensors) ASSERT_OK(e.Bind(t.name, t.data.data()));
  }
  ASSERT_OK(e.Bind("images", step.images.data()));
  ASSERT_OK(e.Bind("labels", step.labels.data()));
  ASSERT_OK(e.Bind("indices", step.indices.data()));
  ASSERT_OK(e.Bind("lr", step.lr.data()));
  if (step.compiled.graph.FindLeaf("step") != nullptr) {
    ASSERT_OK(e.Bind("step", &step.count));
  }
}

void ExpectNoneOfOurs(Step& step, const std::string& name) {
  Executable& e = step.executable();
  ASSERT_OK(e.Run(3));
  const int created = primitives;
  allocations = library_allocations = 0;
  counting = true;
  const absl::Status status = e.Run(10);
  counting = false;
  ASSERT_OK(status);
  std::printf("%s: %d allocations of oneDNN in 10 steps\n", name.c_str(),
              library_allocations.load());
  EXPECT_EQ(allocations, 0) << name;
  EXPECT_EQ(primitives, created) << name << " created primitives in a step";
}

TEST(AllocationTest, OurCodeAllocatesNothingInAStep) {
  for (bool fuse : {false, true}) {
    for (Kernels kernels : {Kernels::kOnednn, Kernels::kLoops}) {
      for (OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdam}) {
        CompileOptions options;
        options.fuse = fuse;
        options.kernels = kernels;
        Step step = MakeStep(options, kind);
        BindAll(step);
        ExpectNoneOfOurs(
            step, std::string(fuse ? "fused, " : "unfused, ") +
                      ToString(kernels) +
                      (kind == OptimizerKind::kSgd ? ", sgd" : ", adam"));
      }
    }
  }
}

// Unfused, so that some ops are done one model after the other.
TEST(AllocationTest, AStepOfManyModelsAllocatesNothing) {
  for (const bool fuse : {false, true}) {
    CompileOptions options;
    options.fuse = fuse;
    options.vectorize.models = 3;
    Step step = MakeStep(options, OptimizerKind::kAdam);
    BindAll(step);
    ExpectNoneOfOurs(step, fuse ? "3 models, fused" : "3 models, unfused");
  }
}

TEST(AllocationTest, ATeamAllocatesNothingWhileItRuns) {
  for (const int threads : {1, 2}) {
    for (const bool sparse : {false, true}) {
      CompileOptions options;
      options.dispatch = Dispatch::kSingle;
      options.threads = threads;
      options.sparse.nonzeros = sparse ? 1 : 0;
      Step step = MakeStep(options, OptimizerKind::kAdam);
      BindAll(step);
      ASSERT_OK(step.executable().Run(3));
      allocations = 0;
      counting = true;
      const absl::Status status = step.executable().Run(10);
      counting = false;
      ASSERT_OK(status);
      EXPECT_EQ(allocations, 0) << threads << " workers";
    }
  }
}

TEST(AllocationTest, TheCountersCount) {
  const int created = primitives;
  CompileOptions options;
  options.kernels = Kernels::kOnednn;
  Step step = MakeStep(options, OptimizerKind::kSgd);
  EXPECT_GT(primitives, created);
  allocations = 0;
  counting = true;
  std::string* volatile s = new std::string(1000, 'x');
  counting = false;
  delete s;
  EXPECT_GE(allocations, 2);
}

}  // namespace
}  // namespace onestep
