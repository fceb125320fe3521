// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cublas_lt.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status.h"
#include "runtime/cuda/cuda_library.h"

namespace onestep {
namespace {

constexpr int kMaxCandidates = 24;
constexpr int kRepeats = 20;  // in the graph that is timed
constexpr int kRounds = 3;    // of which the fastest counts
constexpr uint32_t kBaseAlignment = 256;
constexpr uint32_t kVectorAlignment = 16;  // of a bias
// Bytes of 0x3c make floats of 0.0115: sums of them stay in range.
constexpr int kScratchByte = 0x3c;

absl::Status LtStatus(const LtFunctions& lt, absl::string_view call,
                      cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string text = absl::StrCat(
      call, ": ", lt.cublasLtGetStatusString(status), " (", status, ")");
  switch (status) {
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return absl::UnimplementedError(text);
    case CUBLAS_STATUS_ALLOC_FAILED:
      return absl::ResourceExhaustedError(text);
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return absl::UnavailableError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::StatusOr<LtFunctions> OpenCublasLt() {
  const std::string name = absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR);
  const absl::StatusOr<void*> library = OpenCudaLibrary(name);
  if (!library.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cublasLt: ", library.status().message()));
  }
  LtFunctions lt;
#define ONESTEP_LT_LOAD(f)                                                \
  lt.f = reinterpret_cast<decltype(lt.f)>(dlsym(*library, #f));           \
  if (lt.f == nullptr) {                                                  \
    return absl::UnavailableError(absl::StrCat(name, ": it lacks ", #f)); \
  }
  ONESTEP_LT_FUNCTIONS(ONESTEP_LT_LOAD)
#undef ONESTEP_LT_LOAD
  return lt;
}

// "64x64"; of the rarer ones the number.
std::string TileName(uint32_t tile) {
  struct Named {
    uint32_t tile;
    const char* name;
  };
#define ONESTEP_TILE(shape) \
  { CUBLASLT_MATMUL_TILE_##shape, #shape }
  static constexpr Named kTiles[] = {
      ONESTEP_TILE(8x8),     ONESTEP_TILE(8x16),    ONESTEP_TILE(16x8),
      ONESTEP_TILE(8x32),    ONESTEP_TILE(16x16),   ONESTEP_TILE(32x8),
      ONESTEP_TILE(8x64),    ONESTEP_TILE(16x32),   ONESTEP_TILE(32x16),
      ONESTEP_TILE(64x8),    ONESTEP_TILE(32x32),   ONESTEP_TILE(32x64),
      ONESTEP_TILE(64x32),   ONESTEP_TILE(32x128),  ONESTEP_TILE(64x64),
      ONESTEP_TILE(128x32),  ONESTEP_TILE(64x128),  ONESTEP_TILE(128x64),
      ONESTEP_TILE(64x256),  ONESTEP_TILE(128x128), ONESTEP_TILE(256x64),
      ONESTEP_TILE(128x256), ONESTEP_TILE(256x128), ONESTEP_TILE(64x96),
      ONESTEP_TILE(96x64),   ONESTEP_TILE(96x128),  ONESTEP_TILE(128x96),
      ONESTEP_TILE(128x192), ONESTEP_TILE(192x128), ONESTEP_TILE(32x256),
      ONESTEP_TILE(256x32),  ONESTEP_TILE(8x128),   ONESTEP_TILE(16x64),
      ONESTEP_TILE(16x128)};
#undef ONESTEP_TILE
  for (const Named& named : kTiles) {
    if (named.tile == tile) return named.name;
  }
  return absl::StrCat("number ", tile);
}

absl::StatusOr<cublasLtEpilogue_t> EpilogueOf(const CudaMatMul& matmul) {
  const auto refuse = [&](const char* why) {
    return absl::UnimplementedError(
        absl::StrCat(matmul.ToString(), ": no epilogue of cublasLt ", why));
  };
  if (matmul.models > 0 && (matmul.bias || matmul.column_sums) &&
      matmul.n * sizeof(float) % kVectorAlignment != 0) {
    return refuse("takes a model's vector that is not aligned to 16 bytes");
  }
  if (matmul.mask_in) {
    if (matmul.bias || matmul.relu) return refuse("takes a mask and a bias");
    return matmul.column_sums ? CUBLASLT_EPILOGUE_DRELU_BGRAD
                              : CUBLASLT_EPILOGUE_DRELU;
  }
  if (matmul.column_sums) {
    if (matmul.bias || matmul.relu) return refuse("has sums and a bias");
    // b is cublasLt's A, whose sums it takes only when A is not transposed.
    if (matmul.trans_b) return refuse("sums the columns of b transposed");
    return CUBLASLT_EPILOGUE_BGRADA;
  }
  if (matmul.mask_out) {
    if (!matmul.relu) return refuse("writes a mask without a relu");
    return matmul.bias ? CUBLASLT_EPILOGUE_RELU_AUX_BIAS
                       : CUBLASLT_EPILOGUE_RELU_AUX;
  }
  if (matmul.relu) {
    return matmul.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  }
  return matmul.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// Operands in device memory on which a matmul is timed.
class ScratchOperands {
 public:
  absl::Status Allocate(CudaApi& cuda, const CudaMatMul& x,
                        CudaApi::Stream stream) {
    constexpr int64_t kFloat = sizeof(float);
    const auto add = [&](bool wanted, int64_t bytes) -> absl::StatusOr<void*> {
      if (!wanted) return nullptr;
      bytes *= x.count();
      ASSIGN_OR_RETURN(CudaMemory memory,
                       Own<CudaMemory>(cuda, cuda.Malloc(bytes)));
      RETURN_IF_ERROR(cuda.Memset(memory.get(), kScratchByte, bytes, stream));
      memory_.push_back(std::move(memory));
      return memory_.back().get();
    };
    ASSIGN_OR_RETURN(void* a, add(true, x.m * x.k * kFloat));
    ASSIGN_OR_RETURN(void* b, add(true, x.k * x.n * kFloat));
    ASSIGN_OR_RETURN(void* y, add(true, x.m * x.n * kFloat));
    ASSIGN_OR_RETURN(void* bias, add(x.bias, x.n * kFloat));
    ASSIGN_OR_RETURN(void* sums, add(x.column_sums, x.n * kFloat));
    ASSIGN_OR_RETURN(operands_.mask,
                     add(x.mask_in || x.mask_out, x.m * MaskColumns(x.n) / 8));
    operands_.a = static_cast<float*>(a);
    operands_.b = static_cast<float*>(b);
    operands_.y = static_cast<float*>(y);
    operands_.bias = static_cast<float*>(bias);
    operands_.column_sums = static_cast<float*>(sums);
    return absl::OkStatus();
  }
  const CudaMatMulOperands& operands() const { return operands_; }

 private:
  std::vector<CudaMemory> memory_;
  CudaMatMulOperands operands_;
};

absl::Status CheckAlignment(const CudaMatMul& matmul, const char* what,
                            const void* address, uint32_t alignment) {
  if (reinterpret_cast<uintptr_t>(address) % alignment == 0) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrFormat(
      "%s: want %s aligned to %d bytes", matmul.ToString(), what, alignment));
}

absl::Status CheckOperands(const LtPlan& plan, const CudaMatMulOperands& x) {
  const CudaMatMul& matmul = plan.matmul;
  const LtProblem& problem = plan.descriptors->problem();
  if (x.a == nullptr || x.b == nullptr || x.y == nullptr ||
      matmul.bias != (x.bias != nullptr) ||
      matmul.column_sums != (x.column_sums != nullptr) ||
      (matmul.mask_in || matmul.mask_out) != (x.mask != nullptr)) {
    return absl::InternalError(
        absl::StrCat(matmul.ToString(), ": want its operands and no others"));
  }
  RETURN_IF_ERROR(CheckAlignment(matmul, "a", x.a, LtAlignment(problem.ldb)));
  RETURN_IF_ERROR(CheckAlignment(matmul, "b", x.b, LtAlignment(problem.lda)));
  RETURN_IF_ERROR(CheckAlignment(matmul, "y", x.y, LtAlignment(problem.ldd)));
  RETURN_IF_ERROR(CheckAlignment(matmul, "bias", x.bias, kVectorAlignment));
  RETURN_IF_ERROR(
      CheckAlignment(matmul, "column sums", x.column_sums, kVectorAlignment));
  return CheckAlignment(matmul, "mask", x.mask, kVectorAlignment);
}

}  // namespace

absl::StatusOr<LtProblem> ToLtProblem(const CudaMatMul& matmul) {
  LtProblem problem;
  ASSIGN_OR_RETURN(problem.epilogue, EpilogueOf(matmul));
  switch (matmul.math) {
    case MathMode::kFp32:
      problem.compute = CUBLAS_COMPUTE_32F;
      break;
    case MathMode::kTf32:
      problem.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
      break;
    case MathMode::kBf16:
      problem.compute = CUBLAS_COMPUTE_32F_FAST_16BF;
      break;
  }
  problem.m = matmul.n;
  problem.n = matmul.m;
  problem.k = matmul.k;
  // b row-major [k,n] is column-major [n,k]: op(b)^T as it is.
  problem.op_a = matmul.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  problem.lda = matmul.trans_b ? matmul.k : matmul.n;
  problem.op_b = matmul.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  problem.ldb = matmul.trans_a ? matmul.m : matmul.k;
  problem.ldd = matmul.n;
  if (matmul.mask_in || matmul.mask_out) {
    problem.mask_ld = MaskColumns(matmul.n);
  }
  if (matmul.models == 0) return problem;
  problem.models = matmul.models;
  problem.stride_a = matmul.k * matmul.n;
  problem.stride_b = matmul.shared_a ? 0 : matmul.m * matmul.k;
  problem.stride_d = matmul.m * matmul.n;
  problem.vector_stride = matmul.n;
  problem.mask_stride = matmul.m * problem.mask_ld;
  return problem;
}

uint32_t LtAlignment(int64_t leading_dimension) {
  const uint32_t bytes =
      static_cast<uint32_t>(leading_dimension) * sizeof(float) | kBaseAlignment;
  return bytes & -bytes;  // its lowest bit
}

absl::StatusOr<const LtFunctions*> LoadCublasLt() {
  static const auto* const lt = new absl::StatusOr<LtFunctions>(OpenCublasLt());
  if (!lt->ok()) return lt->status();
  return &**lt;
}

template <typename T>
absl::Status LtDescriptors::Set(cublasLtMatmulDescAttributes_t attribute,
                                T value) {
  return LtStatus(lt_,
                  absl::StrCat("cublasLtMatmulDescSetAttribute ", attribute),
                  lt_.cublasLtMatmulDescSetAttribute(operation_, attribute,
                                                     &value, sizeof(value)));
}

absl::StatusOr<std::unique_ptr<LtDescriptors>> LtDescriptors::Create(
    const LtFunctions& lt, const LtProblem& problem) {
  std::unique_ptr<LtDescriptors> d(new LtDescriptors(lt, problem));
  RETURN_IF_ERROR(LtStatus(lt, "cublasLtMatmulDescCreate",
                           lt.cublasLtMatmulDescCreate(
                               &d->operation_, problem.compute, CUDA_R_32F)));
  RETURN_IF_ERROR(d->Set(CUBLASLT_MATMUL_DESC_TRANSA, problem.op_a));
  RETURN_IF_ERROR(d->Set(CUBLASLT_MATMUL_DESC_TRANSB, problem.op_b));
  RETURN_IF_ERROR(d->Set(CUBLASLT_MATMUL_DESC_EPILOGUE, problem.epilogue));
  RETURN_IF_ERROR(
      d->Set(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE));
  if (problem.mask_ld > 0) {
    RETURN_IF_ERROR(
        d->Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, problem.mask_ld));
  }
  if (problem.models > 1) {
    RETURN_IF_ERROR(
        d->Set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, problem.vector_stride));
    RETURN_IF_ERROR(d->Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE,
                           problem.mask_stride));
  }
  const auto layout = [&](cublasLtMatrixLayout_t* out, int64_t rows,
                          int64_t cols, cublasOperation_t op, int64_t ld,
                          int64_t stride) {
    if (op == CUBLAS_OP_T) std::swap(rows, cols);
    RETURN_IF_ERROR(LtStatus(
        lt, "cublasLtMatrixLayoutCreate",
        lt.cublasLtMatrixLayoutCreate(out, CUDA_R_32F, rows, cols, ld)));
    const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute,
                         auto value) {
      return LtStatus(lt, "cublasLtMatrixLayoutSetAttribute",
                      lt.cublasLtMatrixLayoutSetAttribute(
                          *out, attribute, &value, sizeof(value)));
    };
    RETURN_IF_ERROR(set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                        static_cast<int32_t>(problem.models)));
    return set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
  };
  const LtProblem& p = problem;
  RETURN_IF_ERROR(layout(&d->a_, p.m, p.k, p.op_a, p.lda, p.stride_a));
  RETURN_IF_ERROR(layout(&d->b_, p.k, p.n, p.op_b, p.ldb, p.stride_b));
  RETURN_IF_ERROR(layout(&d->d_, p.m, p.n, CUBLAS_OP_N, p.ldd, p.stride_d));
  return d;
}

LtDescriptors::~LtDescriptors() {
  for (cublasLtMatrixLayout_t layout : {a_, b_, d_}) {
    if (layout != nullptr) lt_.cublasLtMatrixLayoutDestroy(layout);
  }
  if (operation_ != nullptr) lt_.cublasLtMatmulDescDestroy(operation_);
}

absl::Status LtDescriptors::SetPointers(const void* vector, const void* mask) {
  if (vector != nullptr) {
    RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector));
  }
  if (mask != nullptr) {
    RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, mask));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CublasLt>> CublasLt::Create(CudaApi& cuda) {
  RETURN_IF_ERROR(cuda.Device().status());
  ASSIGN_OR_RETURN(const LtFunctions* const lt, LoadCublasLt());
  std::unique_ptr<CublasLt> library(new CublasLt(cuda, *lt));
  RETURN_IF_ERROR(
      LtStatus(*lt, "cublasLtCreate", lt->cublasLtCreate(&library->handle_)));
  const float scalars[] = {1, 0};
  ASSIGN_OR_RETURN(library->scalars_,
                   Own<CudaMemory>(cuda, cuda.Malloc(sizeof(scalars))));
  ASSIGN_OR_RETURN(const CudaStream stream,
                   Own<CudaStream>(cuda, cuda.CreateStream()));
  RETURN_IF_ERROR(cuda.CopyToDevice(library->scalars_.get(), scalars,
                                    sizeof(scalars), stream.get()));
  RETURN_IF_ERROR(cuda.Synchronize(stream.get()));
  return library;
}

std::string CublasLt::Version() const {
  const size_t version = lt_.cublasLtGetVersion();
  return absl::StrCat("cublasLt ", version / 10000, ".", version / 100 % 100,
                      ".", version % 100);
}

absl::StatusOr<std::unique_ptr<LtPlan>> CublasLt::Plan(const CudaMatMul& matmul,
                                                       void* workspace,
                                                       int64_t workspace_bytes,
                                                       CudaApi::Stream stream) {
  ASSIGN_OR_RETURN(const LtProblem problem, ToLtProblem(matmul));
  auto plan = std::make_unique<LtPlan>();
  plan->matmul = matmul;
  plan->workspace = workspace;
  plan->workspace_bytes = workspace_bytes;
  ASSIGN_OR_RETURN(plan->descriptors, LtDescriptors::Create(lt_, problem));
  for (const Choice& choice : choices_) {
    if (choice.matmul == matmul && choice.workspace_bytes == workspace_bytes) {
      plan->algo = choice.algo;
      plan->description = choice.description;
      return plan;
    }
  }
  RETURN_IF_ERROR(ChooseFastest(*plan, stream));
  choices_.push_back({matmul, workspace_bytes, plan->algo, plan->description});
  return plan;
}

absl::StatusOr<std::vector<cublasLtMatmulHeuristicResult_t>>
CublasLt::Candidates(const LtPlan& plan) const {
  const LtDescriptors& d = *plan.descriptors;
  cublasLtMatmulPreference_t made = nullptr;
  RETURN_IF_ERROR(LtStatus(lt_, "cublasLtMatmulPreferenceCreate",
                           lt_.cublasLtMatmulPreferenceCreate(&made)));
  const auto destroy = lt_.cublasLtMatmulPreferenceDestroy;
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, decltype(destroy)>
      preference(made, destroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                       auto value) {
    return LtStatus(
        lt_, absl::StrCat("cublasLtMatmulPreferenceSetAttribute ", attribute),
        lt_.cublasLtMatmulPreferenceSetAttribute(made, attribute, &value,
                                                 sizeof(value)));
  };
  RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                      static_cast<uint64_t>(plan.workspace_bytes)));
  const LtProblem& problem = d.problem();
  RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                      LtAlignment(problem.lda)));
  RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                      LtAlignment(problem.ldb)));
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    RETURN_IF_ERROR(set(attribute, LtAlignment(problem.ldd)));
  }
  std::vector<cublasLtMatmulHeuristicResult_t> candidates(kMaxCandidates);
  int found = 0;
  const cublasStatus_t status = lt_.cublasLtMatmulAlgoGetHeuristic(
      handle_, d.operation(), d.a(), d.b(), d.d(), d.d(), made, kMaxCandidates,
      candidates.data(), &found);
  // These mean that there is no algorithm; some epilogues give the second one.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED ||
      status == CUBLAS_STATUS_INVALID_VALUE) {
    found = 0;
  } else {
    RETURN_IF_ERROR(LtStatus(lt_, "cublasLtMatmulAlgoGetHeuristic", status));
  }
  candidates.resize(found);
  return candidates;
}

absl::Status CublasLt::ChooseFastest(LtPlan& plan, CudaApi::Stream stream) {
  ScratchOperands scratch;
  RETURN_IF_ERROR(scratch.Allocate(cuda_, plan.matmul, stream));
  const CudaMatMulOperands& operands = scratch.operands();
  // The heuristic takes the pointers' alignment into account.
  RETURN_IF_ERROR(plan.descriptors->SetPointers(
      plan.matmul.bias ? operands.bias : operands.column_sums, operands.mask));
  ASSIGN_OR_RETURN(const auto candidates, Candidates(plan));
  int timed = 0;
  double best_us = 0;
  cublasLtMatmulAlgo_t best = {};
  for (const cublasLtMatmulHeuristicResult_t& candidate : candidates) {
    if (candidate.state != CUBLAS_STATUS_SUCCESS) continue;
    plan.algo = candidate.algo;
    const absl::StatusOr<double> us = TimeMicroseconds(plan, operands, stream);
    if (!us.ok()) {  // the candidate's fault, unless the device is lost
      RETURN_IF_ERROR(cuda_.Synchronize(stream));
      continue;
    }
    if (timed == 0 || *us < best_us) {
      best = candidate.algo;
      best_us = *us;
    }
    ++timed;
  }
  if (timed == 0) {
    return absl::UnimplementedError(absl::StrCat(
        plan.matmul.ToString(), ": ", Version(), " has no algorithm for it"));
  }
  plan.algo = best;
  plan.description = absl::StrFormat("%s, %.1f us, the fastest of %d",
                                     AlgoName(best), best_us, timed);
  return absl::OkStatus();
}

absl::StatusOr<CudaGraph> CublasLt::Repeat(LtPlan& plan,
                                           const CudaMatMulOperands& operands,
                                           CudaApi::Stream stream) {
  RETURN_IF_ERROR(cuda_.BeginCapture(stream));
  absl::Status status;
  for (int i = 0; i < kRepeats && status.ok(); ++i) {
    status = Run(plan, operands, stream);
  }
  // Ends the capture even after an error, so that the stream can be used again.
  absl::StatusOr<CudaGraph> graph =
      Own<CudaGraph>(cuda_, cuda_.EndCapture(stream));
  RETURN_IF_ERROR(status);
  return graph;
}

absl::StatusOr<double> CublasLt::TimeMicroseconds(
    LtPlan& plan, const CudaMatMulOperands& operands, CudaApi::Stream stream) {
  // Loads the algorithm's kernel, which a capture does not allow.
  RETURN_IF_ERROR(Run(plan, operands, stream));
  RETURN_IF_ERROR(cuda_.Synchronize(stream));
  ASSIGN_OR_RETURN(const CudaGraph graph, Repeat(plan, operands, stream));
  ASSIGN_OR_RETURN(
      const CudaGraphExec exec,
      Own<CudaGraphExec>(cuda_, cuda_.Instantiate(graph.get(), stream)));
  ASSIGN_OR_RETURN(const CudaEvent start,
                   Own<CudaEvent>(cuda_, cuda_.CreateEvent()));
  ASSIGN_OR_RETURN(const CudaEvent stop,
                   Own<CudaEvent>(cuda_, cuda_.CreateEvent()));
  RETURN_IF_ERROR(cuda_.LaunchGraph(exec.get(), stream));
  double best_ms = 0;
  for (int round = 0; round < kRounds; ++round) {
    RETURN_IF_ERROR(cuda_.Record(start.get(), stream));
    RETURN_IF_ERROR(cuda_.LaunchGraph(exec.get(), stream));
    RETURN_IF_ERROR(cuda_.Record(stop.get(), stream));
    RETURN_IF_ERROR(cuda_.Synchronize(stream));
    ASSIGN_OR_RETURN(const float ms, cuda_.Elapsed(start.get(), stop.get()));
    best_ms = round == 0 ? ms : std::min<double>(best_ms, ms);
  }
  return best_ms * 1000 / kRepeats;
}

absl::Status CublasLt::Run(LtPlan& plan, const CudaMatMulOperands& operands,
                           CudaApi::Stream stream) {
  RETURN_IF_ERROR(CheckOperands(plan, operands));
  LtDescriptors& d = *plan.descriptors;
  RETURN_IF_ERROR(d.SetPointers(
      plan.matmul.bias ? operands.bias : operands.column_sums, operands.mask));
  const float* const one = static_cast<const float*>(scalars_.get());
  const float* const beta = plan.matmul.accumulate ? one : one + 1;
  return LtStatus(lt_, absl::StrCat(plan.matmul.ToString(), ": cublasLtMatmul"),
                  lt_.cublasLtMatmul(handle_, d.operation(), one, operands.b,
                                     d.a(), operands.a, d.b(), beta, operands.y,
                                     d.d(), operands.y, d.d(), &plan.algo,
                                     plan.workspace, plan.workspace_bytes,
                                     reinterpret_cast<cudaStream_t>(stream)));
}

std::string CublasLt::AlgoName(const cublasLtMatmulAlgo_t& algo) const {
  const auto get = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
    uint32_t value = 0;
    size_t written = 0;
    lt_.cublasLtMatmulAlgoConfigGetAttribute(&algo, attribute, &value,
                                             sizeof(value), &written);
    return value;
  };
  std::string name =
      absl::StrCat("algorithm ", get(CUBLASLT_ALGO_CONFIG_ID), " tile ",
                   TileName(get(CUBLASLT_ALGO_CONFIG_TILE_ID)));
  const uint32_t split = get(CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  if (split > 1) absl::StrAppend(&name, " split-k ", split);
  return name;
}

}  // namespace onestep
