// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_api.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/cuda/cublas_lt.h"
#include "runtime/cuda/cuda_status.h"
#include "runtime/cuda/cupti_accounting.h"

namespace onestep {
namespace {

// Shared memory and blocks per cluster that a kernel may have unasked.
constexpr uint32_t kPlainSharedBytes = 48 << 10;
constexpr uint32_t kPortableCluster = 8;

// RETURN_IF_CUDA_ERROR(cudaFoo(a, b)): CudaStatus("cudaFoo", cudaFoo(a, b)).
#define RETURN_IF_CUDA_ERROR(call) \
  RETURN_IF_ERROR(CudaStatus(CallName(#call), (call)))

absl::string_view CallName(absl::string_view call) {
  return call.substr(0, call.find('('));
}

cudaStream_t Native(CudaApi::Stream stream) {
  return reinterpret_cast<cudaStream_t>(stream);
}
cudaEvent_t Native(CudaApi::Event event) {
  return reinterpret_cast<cudaEvent_t>(event);
}
cudaGraph_t Native(CudaApi::Graph graph) {
  return reinterpret_cast<cudaGraph_t>(graph);
}
cudaGraphNode_t Native(CudaApi::Node node) {
  return reinterpret_cast<cudaGraphNode_t>(node);
}
cudaGraphExec_t Native(CudaApi::GraphExec exec) {
  return reinterpret_cast<cudaGraphExec_t>(exec);
}
LtPlan* Native(CudaApi::MatMulPlan plan) {
  return reinterpret_cast<LtPlan*>(plan);
}

dim3 Native(const Dim& dim) { return dim3(dim.x, dim.y, dim.z); }

// A destructor can only say what went wrong. The program may be at its end and
// CUDA gone, which is in order.
void LogError(const char* call, cudaError_t error) {
  if (error == cudaSuccess || error == cudaErrorCudartUnloading) return;
  const absl::Status status = CudaStatus(call, error);
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
}

// "cudaMalloc of 1234 bytes: out of memory (2), 56 free"
absl::Status MemoryStatus(const char* call, int64_t bytes, cudaError_t error) {
  const absl::Status status =
      CudaStatus(absl::StrCat(call, " of ", bytes, " bytes"), error);
  size_t free = 0, total = 0;
  if (!absl::IsResourceExhausted(status) ||
      cudaMemGetInfo(&free, &total) != cudaSuccess) {
    return status;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(status.message(), ", ", free, " free"));
}

// What a launch of clusters says beside its grid, for a launch or a node.
cudaLaunchAttribute ClusterOf(const Launch& launch) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = launch.cluster;
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  return attribute;
}

// `attribute` must outlive the result.
cudaLaunchConfig_t ConfigOf(const Launch& launch,
                            cudaLaunchAttribute& attribute,
                            cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = Native(launch.grid);
  config.blockDim = Native(launch.block);
  config.dynamicSmemBytes = launch.shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = launch.cluster > 1 ? 1 : 0;
  return config;
}

// The parallel arrays that a node's edges are given as.
struct Dependencies {
  std::vector<cudaGraphNode_t> nodes;
  std::vector<cudaGraphEdgeData> data;

  explicit Dependencies(absl::Span<const CudaApi::Edge> edges,
                        bool overlap = false) {
    for (const CudaApi::Edge& edge : edges) {
      nodes.push_back(Native(edge.from));
      cudaGraphEdgeData& edge_data = data.emplace_back();
      edge_data = {};
      if (edge.programmatic && overlap) {
        edge_data.from_port = cudaGraphKernelNodePortProgrammatic;
        edge_data.type = cudaGraphDependencyTypeProgrammatic;
      }
    }
  }
};

const char* KindName(cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeKernel:
      return "kernel";
    case cudaGraphNodeTypeMemcpy:
      return "memcpy";
    case cudaGraphNodeTypeMemset:
      return "memset";
    case cudaGraphNodeTypeHost:
      return "host";
    case cudaGraphNodeTypeGraph:
      return "child graph";
    case cudaGraphNodeTypeEmpty:
      return "empty";
    case cudaGraphNodeTypeWaitEvent:
      return "wait event";
    case cudaGraphNodeTypeEventRecord:
      return "record event";
    case cudaGraphNodeTypeExtSemaphoreSignal:
      return "signal semaphore";
    case cudaGraphNodeTypeExtSemaphoreWait:
      return "wait semaphore";
    case cudaGraphNodeTypeMemAlloc:
      return "alloc";
    case cudaGraphNodeTypeMemFree:
      return "free";
    case cudaGraphNodeTypeConditional:
      return "conditional";
    default:
      return "unknown";
  }
}

class Cuda final : public CudaApi {
 public:
  std::string RuntimeVersion() override { return CudaRuntimeVersion(); }
  absl::StatusOr<CudaDevice> Device() override {
    RETURN_IF_ERROR(DeviceCount().status());
    return DescribeDevice(0);
  }
  absl::StatusOr<std::vector<CudaDevice>> Devices() override {
    ASSIGN_OR_RETURN(const int count, DeviceCount());
    std::vector<CudaDevice> devices;
    for (int i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(devices.emplace_back(), DescribeDevice(i));
    }
    return devices;
  }
  absl::StatusOr<int64_t> FreeMemory() override {
    size_t free = 0, total = 0;
    RETURN_IF_CUDA_ERROR(cudaMemGetInfo(&free, &total));
    return static_cast<int64_t>(free);
  }

  absl::StatusOr<void*> Malloc(int64_t bytes) override {
    void* memory = nullptr;
    RETURN_IF_ERROR(
        MemoryStatus("cudaMalloc", bytes, cudaMalloc(&memory, bytes)));
    return memory;
  }
  void Free(void* device) override { LogError("cudaFree", cudaFree(device)); }
  absl::StatusOr<void*> MallocHost(int64_t bytes) override {
    void* memory = nullptr;
    RETURN_IF_ERROR(
        CudaStatus(absl::StrCat("cudaHostAlloc of ", bytes, " bytes"),
                   cudaHostAlloc(&memory, bytes, cudaHostAllocMapped)));
    return memory;
  }
  void FreeHost(void* host) override {
    LogError("cudaFreeHost", cudaFreeHost(host));
  }
  absl::Status CopyToDevice(void* device, const void* host, int64_t bytes,
                            Stream stream) override {
    return CudaStatus("cudaMemcpyAsync to the device",
                      cudaMemcpyAsync(device, host, bytes,
                                      cudaMemcpyHostToDevice, Native(stream)));
  }
  absl::Status CopyToHost(void* host, const void* device, int64_t bytes,
                          Stream stream) override {
    return CudaStatus("cudaMemcpyAsync to the host",
                      cudaMemcpyAsync(host, device, bytes,
                                      cudaMemcpyDeviceToHost, Native(stream)));
  }
  absl::Status Memset(void* device, int value, int64_t bytes,
                      Stream stream) override {
    return CudaStatus("cudaMemsetAsync",
                      cudaMemsetAsync(device, value, bytes, Native(stream)));
  }

  absl::StatusOr<Stream> CreateStream() override {
    cudaStream_t stream = nullptr;
    RETURN_IF_CUDA_ERROR(
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return reinterpret_cast<Stream>(stream);
  }
  void DestroyStream(Stream stream) override {
    LogError("cudaStreamDestroy", cudaStreamDestroy(Native(stream)));
  }
  absl::Status Synchronize(Stream stream) override {
    return CudaStatus("cudaStreamSynchronize",
                      cudaStreamSynchronize(Native(stream)));
  }
  absl::StatusOr<bool> Done(Stream stream) override {
    const cudaError_t error = cudaStreamQuery(Native(stream));
    if (error == cudaErrorNotReady) return false;
    RETURN_IF_ERROR(CudaStatus("cudaStreamQuery", error));
    return true;
  }
  absl::StatusOr<Event> CreateEvent() override {
    cudaEvent_t event = nullptr;
    RETURN_IF_CUDA_ERROR(cudaEventCreate(&event));
    return reinterpret_cast<Event>(event);
  }
  void DestroyEvent(Event event) override {
    LogError("cudaEventDestroy", cudaEventDestroy(Native(event)));
  }
  absl::Status Record(Event event, Stream stream) override {
    return CudaStatus("cudaEventRecord",
                      cudaEventRecord(Native(event), Native(stream)));
  }
  absl::Status Wait(Stream stream, Event event) override {
    return CudaStatus("cudaStreamWaitEvent",
                      cudaStreamWaitEvent(Native(stream), Native(event), 0));
  }
  absl::Status WaitOnHost(Event event) override {
    return CudaStatus("cudaEventSynchronize",
                      cudaEventSynchronize(Native(event)));
  }
  absl::StatusOr<float> Elapsed(Event from, Event to) override {
    float ms = 0;
    RETURN_IF_CUDA_ERROR(cudaEventElapsedTime(&ms, Native(from), Native(to)));
    return ms;
  }

  absl::Status Preload(const Launch& launch) override;
  absl::StatusOr<int> MaxActiveClusters(const Launch& launch) override;
  absl::Status LaunchKernel(const Launch& launch, Stream stream) override;

  absl::StatusOr<Graph> CreateGraph() override {
    cudaGraph_t graph = nullptr;
    RETURN_IF_CUDA_ERROR(cudaGraphCreate(&graph, 0));
    return reinterpret_cast<Graph>(graph);
  }
  void DestroyGraph(Graph graph) override {
    LogError("cudaGraphDestroy", cudaGraphDestroy(Native(graph)));
  }
  absl::StatusOr<Node> AddKernel(Graph graph, absl::Span<const Edge> edges,
                                 const Launch& launch) override;
  absl::StatusOr<Node> AddChildGraph(Graph graph, absl::Span<const Edge> edges,
                                     Graph child) override;
  absl::Status BeginCapture(Stream stream) override {
    return CudaStatus("cudaStreamBeginCapture",
                      cudaStreamBeginCapture(Native(stream),
                                             cudaStreamCaptureModeThreadLocal));
  }
  absl::StatusOr<Graph> EndCapture(Stream stream) override {
    cudaGraph_t graph = nullptr;
    RETURN_IF_CUDA_ERROR(cudaStreamEndCapture(Native(stream), &graph));
    return reinterpret_cast<Graph>(graph);
  }
  absl::StatusOr<std::vector<NodeInfo>> Nodes(Graph graph) override;
  absl::StatusOr<GraphExec> Instantiate(Graph graph, Stream stream) override;
  void DestroyGraphExec(GraphExec exec) override {
    LogError("cudaGraphExecDestroy", cudaGraphExecDestroy(Native(exec)));
  }
  absl::Status LaunchGraph(GraphExec exec, Stream stream) override {
    return CudaStatus("cudaGraphLaunch",
                      cudaGraphLaunch(Native(exec), Native(stream)));
  }
  absl::Status WriteDot(Graph graph, const std::string& path) override {
    return CudaStatus(absl::StrCat(path, ": cudaGraphDebugDotPrint"),
                      cudaGraphDebugDotPrint(Native(graph), path.c_str(),
                                             cudaGraphDebugDotFlagsVerbose));
  }

  absl::StatusOr<std::string> MatMulLibrary() override {
    ASSIGN_OR_RETURN(const CublasLt* const library, Library());
    return library->Version();
  }
  absl::StatusOr<MatMulPlan> PlanMatMul(const CudaMatMul& matmul,
                                        void* workspace,
                                        int64_t workspace_bytes,
                                        Stream stream) override {
    ASSIGN_OR_RETURN(CublasLt* const library, Library());
    ASSIGN_OR_RETURN(std::unique_ptr<LtPlan> plan,
                     library->Plan(matmul, workspace, workspace_bytes, stream));
    return reinterpret_cast<MatMulPlan>(plan.release());
  }
  void DestroyMatMulPlan(MatMulPlan plan) override { delete Native(plan); }
  std::string Describe(MatMulPlan plan) override {
    return Native(plan)->description;
  }
  absl::Status RunMatMul(MatMulPlan plan, const CudaMatMulOperands& operands,
                         Stream stream) override {
    return library_->Run(*Native(plan), operands, stream);
  }

  absl::StatusOr<std::unique_ptr<CudaCallCounter>> CountCalls() override {
    return CountCallsByCupti();
  }

 private:
  static absl::StatusOr<int> DeviceCount();
  static absl::StatusOr<CudaDevice> DescribeDevice(int index);
  absl::StatusOr<CublasLt*> Library() {
    if (library_ == nullptr) {
      ASSIGN_OR_RETURN(library_, CublasLt::Create(*this));
    }
    return library_.get();
  }

  std::unique_ptr<CublasLt> library_;
  // Of the kernels that were made nodes, by their host handles.
  std::unordered_map<const void*, const char*> names_;
};

absl::StatusOr<int> Cuda::DeviceCount() {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count);
      error != cudaSuccess) {
    return NoCudaDevice(error);
  }
  if (count == 0) return absl::UnavailableError("device gpu: no CUDA device");
  return count;
}

absl::StatusOr<CudaDevice> Cuda::DescribeDevice(int index) {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, index);
      error != cudaSuccess) {
    return NoCudaDevice(error);
  }
  int driver = 0;
  RETURN_IF_CUDA_ERROR(cudaDriverGetVersion(&driver));
  CudaDevice device;
  device.name = properties.name;
  device.multiprocessors = properties.multiProcessorCount;
  device.compute_major = properties.major;
  device.compute_minor = properties.minor;
  device.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  device.max_shared_bytes = static_cast<int>(properties.sharedMemPerBlockOptin);
  device.runtime_version = CudaRuntimeVersion();
  device.driver_version = CudaVersionName(driver);
  return device;
}

absl::Status Cuda::Preload(const Launch& launch) {
  cudaFuncAttributes attributes;
  RETURN_IF_ERROR(
      CudaStatus(absl::StrCat(launch.name, ": cudaFuncGetAttributes"),
                 cudaFuncGetAttributes(&attributes, launch.kernel)));
  // Never lowered: another launch of the kernel may want more.
  if (launch.shared_bytes > kPlainSharedBytes &&
      static_cast<int>(launch.shared_bytes) >
          attributes.maxDynamicSharedSizeBytes) {
    RETURN_IF_ERROR(CudaStatus(
        absl::StrCat(launch.name, ": ", launch.shared_bytes,
                     " bytes of shared memory: cudaFuncSetAttribute"),
        cudaFuncSetAttribute(launch.kernel,
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             launch.shared_bytes)));
  }
  if (launch.cluster > kPortableCluster) {
    RETURN_IF_ERROR(CudaStatus(
        absl::StrCat(launch.name, ": clusters of ", launch.cluster,
                     ": cudaFuncSetAttribute"),
        cudaFuncSetAttribute(
            launch.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1)));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Cuda::MaxActiveClusters(const Launch& launch) {
  cudaLaunchAttribute cluster = ClusterOf(launch);
  cudaLaunchConfig_t config = ConfigOf(launch, cluster, nullptr);
  config.numAttrs = 1;  // CUDA requires it here for clusters of one block too
  int clusters = 0;
  const cudaError_t error =
      cudaOccupancyMaxActiveClusters(&clusters, launch.kernel, &config);
  if (error == cudaErrorInvalidClusterSize) {  // none of this size
    cudaGetLastError();
    return 0;
  }
  RETURN_IF_ERROR(CudaStatus(
      absl::StrCat(launch.name, ": cudaOccupancyMaxActiveClusters"), error));
  return clusters;
}

absl::Status Cuda::LaunchKernel(const Launch& launch, Stream stream) {
  cudaLaunchAttribute cluster = ClusterOf(launch);
  const cudaLaunchConfig_t config = ConfigOf(launch, cluster, Native(stream));
  void* args[] = {const_cast<unsigned char*>(launch.args)};
  return CudaStatus(absl::StrCat(launch.name, ": cudaLaunchKernelExC"),
                    cudaLaunchKernelExC(&config, launch.kernel, args));
}

absl::StatusOr<CudaApi::Node> Cuda::AddKernel(Graph graph,
                                              absl::Span<const Edge> edges,
                                              const Launch& launch) {
  // Below sm_90 a kernel cannot wait by itself (dev::WaitForPrerequisites).
  int major = 0;
  RETURN_IF_CUDA_ERROR(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  const Dependencies from(edges, /*overlap=*/major >= 9);
  void* args[] = {const_cast<unsigned char*>(launch.args)};
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeKernel;
  params.kernel.func = const_cast<void*>(launch.kernel);
  params.kernel.gridDim = Native(launch.grid);
  params.kernel.blockDim = Native(launch.block);
  params.kernel.sharedMemBytes = launch.shared_bytes;
  params.kernel.kernelParams = args;
  cudaGraphNode_t node = nullptr;
  RETURN_IF_ERROR(CudaStatus(
      absl::StrCat(launch.name, ": cudaGraphAddNode"),
      cudaGraphAddNode(&node, Native(graph), from.nodes.data(),
                       from.data.data(), from.nodes.size(), &params)));
  if (launch.cluster > 1) {
    const cudaLaunchAttribute cluster = ClusterOf(launch);
    RETURN_IF_ERROR(CudaStatus(
        absl::StrCat(launch.name, ": cudaGraphKernelNodeSetAttribute"),
        cudaGraphKernelNodeSetAttribute(node, cluster.id, &cluster.val)));
  }
  names_[launch.kernel] = launch.name;
  return reinterpret_cast<Node>(node);
}

absl::StatusOr<CudaApi::Node> Cuda::AddChildGraph(Graph graph,
                                                  absl::Span<const Edge> edges,
                                                  Graph child) {
  const Dependencies from(edges);
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeGraph;
  params.graph.graph = Native(child);
  params.graph.ownership = cudaGraphChildGraphOwnershipClone;
  cudaGraphNode_t node = nullptr;
  RETURN_IF_ERROR(CudaStatus(
      "child graph: cudaGraphAddNode",
      cudaGraphAddNode(&node, Native(graph), from.nodes.data(),
                       from.data.data(), from.nodes.size(), &params)));
  return reinterpret_cast<Node>(node);
}

absl::StatusOr<std::vector<CudaApi::NodeInfo>> Cuda::Nodes(Graph graph) {
  size_t count = 0;
  RETURN_IF_CUDA_ERROR(cudaGraphGetNodes(Native(graph), nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  RETURN_IF_CUDA_ERROR(cudaGraphGetNodes(Native(graph), nodes.data(), &count));
  std::vector<NodeInfo> infos;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    RETURN_IF_CUDA_ERROR(cudaGraphNodeGetType(node, &type));
    NodeInfo& info = infos.emplace_back();
    info.kind = KindName(type);
    if (type != cudaGraphNodeTypeKernel) continue;
    // A library's kernel may have no host handle, and then has no name here.
    cudaKernelNodeParams params = {};
    if (cudaGraphKernelNodeGetParams(node, &params) != cudaSuccess) {
      cudaGetLastError();
    } else if (const auto it = names_.find(params.func); it != names_.end()) {
      info.name = it->second;
    }
  }
  return infos;
}

absl::StatusOr<CudaApi::GraphExec> Cuda::Instantiate(Graph graph,
                                                     Stream stream) {
  cudaGraphInstantiateParams params = {};
  params.flags = cudaGraphInstantiateFlagUpload;
  params.uploadStream = Native(stream);
  cudaGraphExec_t exec = nullptr;
  const cudaError_t error =
      cudaGraphInstantiateWithParams(&exec, Native(graph), &params);
  if (error == cudaSuccess) return reinterpret_cast<GraphExec>(exec);
  std::string call = "cudaGraphInstantiateWithParams";
  cudaGraphNodeType type;
  if (params.errNode_out != nullptr &&
      cudaGraphNodeGetType(params.errNode_out, &type) == cudaSuccess) {
    absl::StrAppend(&call, " at a ", KindName(type), " node");
  }
  return CudaStatus(call, error);
}

}  // namespace

absl::StatusOr<CudaApi*> FindCuda() {
  static Cuda* const cuda = new Cuda;
  return cuda;
}

}  // namespace onestep
