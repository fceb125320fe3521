// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/cuda/cuda_ops.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/lower/cuda/cuda_op.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/memory_plan.h"
#include "kernels/kernels.h"
#include "runtime/base/status.h"

namespace onestep {
namespace {

// The number of floats of all models.
int64_t Floats(const TensorType& type) {
  return type.bytes() / DTypeBytes(DType::kF32);
}

// The other nodes that the library's matmul does in its epilogue.
struct Epilogue {
  Node* activation_grad = nullptr;  // the node after it
  Node* reduce_rows = nullptr;      // of its second operand
  int mask = -1;                    // slot: which units were positive
};

class OpsLowering {
 public:
  OpsLowering(Graph& graph, const CudaMatMulChoice& matmuls)
      : graph_(graph), matmuls_(matmuls), plan_(PlanMemory(graph, false)) {}

  absl::StatusOr<CudaOps> Run() {
    AddSlots();
    ops_.plan = plan_.ToString(graph_);
    if (matmuls_.library && matmuls_.gradients) {
      RETURN_IF_ERROR(FindEpilogues());
    }
    for (const auto& node : graph_.nodes()) {
      if (node->def().Has(kLeaf) || taken_.count(node.get()) > 0) continue;
      RETURN_IF_ERROR(AddNode(*node));
    }
    for (const auto& [from, to] : plan_.copies) AddCopy(from, to);
    ops_.arena_bytes = arena_bytes_;
    ops_.workspace_bytes = workspace_bytes_;
    return std::move(ops_);
  }

 private:
  using Nodes = std::vector<Node*>;

  // ---- memory ---------------------------------------------------------------

  void AddSlots() {
    for (const Slot& slot : plan_.slots) {
      CudaSlot& added = ops_.slots.emplace_back();
      added.name = slot.name;
      added.bytes = slot.bytes;
      added.offset = slot.offset;
      if (slot.name.empty()) continue;
      const Node* const leaf = graph_.FindLeaf(slot.name);
      added.role = leaf == nullptr                ? CudaSlot::kResult
                   : leaf->kind == OpKind::kParam ? CudaSlot::kParam
                                                  : CudaSlot::kInput;
    }
    arena_bytes_ = plan_.arena_bytes;
    for (const auto& node : graph_.nodes()) AddTables(*node);
  }

  // Makes a table of an input that only `node` reads, by row numbers that are
  // an input too.
  void AddTables(Node& node) {
    const std::optional<RowLookup> lookup = LookupOf(node);
    if (!lookup) return;
    const Value rows = node.operands[lookup->table];
    const Value numbers = node.operands[lookup->indices];
    if (rows.node->kind != OpKind::kInput ||
        numbers.node->kind != OpKind::kInput) {
      return;
    }
    const int slot = plan_.SlotOf(rows);
    for (const CudaTable& known : ops_.tables) {
      if (known.slot == slot) return;
    }
    for (Node* user : graph_.Users(rows)) {
      if (!LookupOf(*user)) return;
    }
    ops_.tables.push_back({slot, plan_.SlotOf(numbers),
                           rows.type().bytes() / rows.type().dims[0]});
  }

  int NewSlot(int64_t bytes) {
    CudaSlot& slot = ops_.slots.emplace_back();
    slot.bytes = bytes;
    slot.offset = arena_bytes_;
    arena_bytes_ += AlignUp(bytes);
    return static_cast<int>(ops_.slots.size()) - 1;
  }

  // ---- epilogues of the library ---------------------------------------------

  absl::Status FindEpilogues() {
    Nodes nodes;  // that run
    for (const auto& node : graph_.nodes()) {
      if (!node->def().Has(kLeaf)) nodes.push_back(node.get());
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i]->kind != OpKind::kMatMul) continue;
      if (i + 1 < nodes.size()) {
        RETURN_IF_ERROR(TryActivationGrad(*nodes[i], *nodes[i + 1]));
      }
      RETURN_IF_ERROR(TryColumnSums(*nodes[i]));
    }
    return absl::OkStatus();
  }

  // Whether the library has an algorithm for it; adds a note if it has none.
  absl::StatusOr<bool> Has(const CudaMatMul& matmul) {
    const auto plan = matmuls_.plan(matmul);
    if (absl::IsUnimplemented(plan.status())) {
      ops_.notes.push_back(absl::StrCat(
          matmul.ToString(), ": not fused: ", plan.status().message()));
      return false;
    }
    RETURN_IF_ERROR(plan.status());
    return true;
  }

  // y = relu(a w + bias) .. dy = matmul; dx = relu'(y) dy. The first matmul
  // writes a mask of the positive elements of y, the second multiplies its
  // result by it.
  absl::Status TryActivationGrad(Node& product, Node& next) {
    const bool fits =
        next.kind == OpKind::kActivationGrad &&
        next.as<ActivationGradAttrs>().activation == Activation::kRelu &&
        next.operands[1] == product.result() &&
        graph_.CountUses(product.result()) == 1 &&
        !product.as<MatMulAttrs>().has_epilogue();
    if (!fits) return absl::OkStatus();
    Node& forward = *next.operands[0].node;
    if (forward.kind != OpKind::kMatMul || !forward.as<MatMulAttrs>().bias ||
        forward.as<MatMulAttrs>().activation != Activation::kRelu) {
      return absl::OkStatus();
    }
    CudaMatMul with_mask = MatMulOf(forward);
    with_mask.mask_out = true;
    CudaMatMul masked = MatMulOf(product);
    masked.mask_in = true;
    masked.column_sums = next.as<ActivationGradAttrs>().bias != BiasGrad::kNone;
    for (const CudaMatMul& matmul : {with_mask, masked}) {
      ASSIGN_OR_RETURN(const bool has, Has(matmul));
      if (!has) return absl::OkStatus();
    }
    const int mask =
        NewSlot(masked.count() * masked.m * MaskColumns(masked.n) / 8);
    epilogues_[&forward].mask = mask;
    epilogues_[&product] = {&next, nullptr, mask};
    taken_.insert(&next);
    return absl::OkStatus();
  }

  // y = x^T dz with the sum of dz over its rows.
  absl::Status TryColumnSums(Node& product) {
    if (!product.as<MatMulAttrs>().trans_a ||
        product.as<MatMulAttrs>().trans_b) {
      return absl::OkStatus();
    }
    const int position = graph_.IndexOf(&product);
    for (Node* sum : graph_.Users(product.operands[1])) {
      if (sum->kind != OpKind::kReduceRows || taken_.count(sum) > 0) continue;
      const std::vector<Node*> readers = graph_.Users(sum->result());
      const bool in_time = std::all_of(
          readers.begin(), readers.end(),
          [&](Node* reader) { return graph_.IndexOf(reader) > position; });
      if (!in_time) continue;
      CudaMatMul matmul = MatMulOf(product);
      matmul.column_sums = true;
      ASSIGN_OR_RETURN(const bool has, Has(matmul));
      if (!has) return absl::OkStatus();
      epilogues_[&product].reduce_rows = sum;
      taken_.insert(sum);
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  CudaMatMul MatMulOf(const Node& node) const {
    const MatMulAttrs& attrs = node.as<MatMulAttrs>();
    CudaMatMul matmul;
    matmul.m = node.types[0].dims[0];
    matmul.n = node.types[0].dims[1];
    matmul.k = node.operands[0].type().dims[attrs.trans_a ? 0 : 1];
    matmul.trans_a = attrs.trans_a;
    matmul.trans_b = attrs.trans_b;
    matmul.bias = attrs.bias;
    matmul.relu = attrs.bias && attrs.activation == Activation::kRelu;
    matmul.accumulate = attrs.accumulate;
    matmul.math = matmuls_.math;
    matmul.models = node.types[0].models;
    matmul.shared_a = matmul.models > 0 && node.operands[0].type().models == 0;
    return matmul;
  }

  // ---- ops ------------------------------------------------------------------

  absl::Status AddNode(Node& node) {
    if (node.kind == OpKind::kConstant) {
      ops_.constants.emplace_back(plan_.SlotOf(node.result()),
                                  node.as<ConstantAttrs>().value);
      return absl::OkStatus();
    }
    if (node.kind == OpKind::kMatMul && matmuls_.library) {
      ASSIGN_OR_RETURN(const bool done, AddLibraryMatMul(node));
      if (done) return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(CudaKernel kernel, MakeCudaKernel(plan_, node));
    AddKernel(Describe(plan_, node), SlotsOf(node.operands), ResultSlots(node),
              std::move(kernel));
    return absl::OkStatus();
  }

  std::vector<int> SlotsOf(const std::vector<Value>& values) const {
    std::vector<int> slots;
    for (const Value& value : values) slots.push_back(plan_.SlotOf(value));
    return slots;
  }

  std::vector<int> ResultSlots(Node& node) const {
    std::vector<int> slots;
    for (int r = 0; r < static_cast<int>(node.types.size()); ++r) {
      slots.push_back(plan_.SlotOf(node.result(r)));
    }
    return slots;
  }

  void AddKernel(StepInfo info, std::vector<int> reads, std::vector<int> writes,
                 CudaKernel kernel) {
    int64_t offset = 0;
    if (kernel.workspace_bytes > 0) {
      offset = workspace_bytes_;
      workspace_bytes_ += AlignUp(kernel.workspace_bytes);
      writes.push_back(WorkspacePlace(offset));
    }
    info.implementation = "cuda kernel";
    const std::string label = info.op;
    ops_.ops.push_back({std::move(info), [=, make = std::move(kernel.launch)](
                                             const CudaBindings& at) {
                          CudaNode node;
                          node.label = label;
                          node.launch = make(at, at.workspace() + offset);
                          node.reads = reads;
                          node.writes = writes;
                          return node;
                        }});
  }

  void AddCopy(int from, int to) {
    StepInfo info;
    info.op = "copy";
    info.phase = ToString(Phase::kUpdate);
    const int64_t bytes = ops_.slots[from].bytes;
    info.label =
        absl::StrCat("copy ", bytes, " bytes to ", ops_.slots[to].name);
    info.bytes = 2.0 * bytes;
    AddKernel(std::move(info), {from}, {to}, CopyKernel(from, to, bytes));
  }

  // Returns false where the library has no algorithm; our kernel is used then.
  absl::StatusOr<bool> AddLibraryMatMul(Node& node) {
    const auto it = epilogues_.find(&node);
    const Epilogue epilogue = it == epilogues_.end() ? Epilogue() : it->second;
    CudaMatMul matmul = MatMulOf(node);
    Node& last = epilogue.activation_grad ? *epilogue.activation_grad : node;
    StepInfo info = Describe(plan_, node);
    std::vector<int> reads = SlotsOf(node.operands);
    std::vector<int> writes = {plan_.SlotOf(last.result())};
    LibrarySlots at;
    at.a = reads[0], at.b = reads[1], at.y = writes[0];
    if (matmul.bias) at.bias = reads[2];
    Value bias_update;  // b' = b + the column sums
    if (epilogue.activation_grad != nullptr) {
      matmul.mask_in = true;
      reads.push_back(epilogue.mask);
      const BiasGrad bias = last.as<ActivationGradAttrs>().bias;
      matmul.column_sums = bias != BiasGrad::kNone;
      if (bias == BiasGrad::kGrad) at.sums = plan_.SlotOf(last.result(1));
      if (bias == BiasGrad::kUpdate) {
        at.sums = NewSlot(last.types[1].bytes());
        bias_update = last.result(1);
      }
      info.op = "matmul + activation_grad";
      absl::StrAppend(&info.label, "; ", Describe(plan_, last).label);
    } else if (epilogue.mask >= 0) {
      matmul.mask_out = true;
      writes.push_back(epilogue.mask);
    }
    if (epilogue.reduce_rows != nullptr) {
      matmul.column_sums = true;
      at.sums = plan_.SlotOf(epilogue.reduce_rows->result());
      info.op = "matmul + reduce_rows";
    }
    at.mask = epilogue.mask;
    if (at.sums >= 0) writes.push_back(at.sums);
    const auto plan = matmuls_.plan(matmul);
    if (absl::IsUnimplemented(plan.status())) {
      ops_.notes.push_back(absl::StrCat(
          matmul.ToString(), ": our own kernel: ", plan.status().message()));
      return false;
    }
    RETURN_IF_ERROR(plan.status());
    if (matmul.accumulate) {
      const int c = reads.back();
      if (c != at.y) AddCopy(c, at.y);
    }
    AddLibraryOp(std::move(info), matmul, *plan, at, std::move(reads),
                 std::move(writes));
    AddRest(node, at, bias_update);
    return true;
  }

  struct LibrarySlots {
    int a = -1, b = -1, y = -1, bias = -1, mask = -1, sums = -1;
  };

  void AddLibraryOp(StepInfo info, const CudaMatMul& matmul,
                    CudaApi::MatMulPlan plan, const LibrarySlots& slots,
                    std::vector<int> reads, std::vector<int> writes) {
    info.library = true;
    const std::string chosen = matmuls_.describe(plan);
    info.implementation =
        absl::StrCat("cublasLt", chosen.empty() ? "" : ": ", chosen);
    ++ops_.library;
    const std::string label = info.op;
    ops_.ops.push_back({std::move(info), [=](const CudaBindings& at) {
                          const auto address = [&at](int slot) {
                            return slot < 0 ? nullptr
                                            : static_cast<float*>(at.at(slot));
                          };
                          CudaNode node;
                          node.label = label;
                          node.library = true;
                          node.matmul = matmul;
                          node.plan = plan;
                          node.operands.a = address(slots.a);
                          node.operands.b = address(slots.b);
                          node.operands.y = address(slots.y);
                          node.operands.bias = address(slots.bias);
                          node.operands.mask = address(slots.mask);
                          node.operands.column_sums = address(slots.sums);
                          node.reads = reads;
                          node.writes = writes;
                          // The library's matmuls share one workspace.
                          node.writes.push_back(kLibraryPlace);
                          return node;
                        }});
  }

  // Adds the parts of the op that no epilogue of the library does.
  void AddRest(Node& node, const LibrarySlots& slots, Value bias_update) {
    const MatMulAttrs& attrs = node.as<MatMulAttrs>();
    const bool by_library =
        attrs.activation == Activation::kNone ||
        (attrs.activation == Activation::kRelu && attrs.bias);
    if (!by_library) {
      StepInfo info = Describe(plan_, node);
      info.op = ToString(attrs.activation);
      info.in_place = true;
      AddKernel(
          std::move(info), {slots.y}, {slots.y},
          ActivateKernel(attrs.activation, slots.y, Floats(node.types[0])));
    }
    if (bias_update) {
      StepInfo info = Describe(plan_, *bias_update.node);
      info.op = "add";
      const int from = plan_.SlotOf(bias_update.node->operands[2]);
      const int to = plan_.SlotOf(bias_update);
      AddKernel(std::move(info), {from, slots.sums}, {to},
                AddKernelOf(from, slots.sums, to, Floats(bias_update.type())));
    }
  }

  Graph& graph_;
  const CudaMatMulChoice& matmuls_;
  const MemoryPlan plan_;
  CudaOps ops_;
  int64_t arena_bytes_ = 0, workspace_bytes_ = 0;
  std::map<const Node*, Epilogue> epilogues_;
  std::set<const Node*> taken_;  // by an epilogue
};

}  // namespace

absl::StatusOr<CudaOps> LowerCudaOps(Graph& graph,
                                     const CudaMatMulChoice& matmuls) {
  RETURN_IF_ERROR(SeparateOutputs(graph));
  return OpsLowering(graph, matmuls).Run();
}

std::vector<CudaNode> BoundaryNodes(const CudaBindings& bindings, bool begin) {
  struct Move {
    int slot;
    cuda::BoundaryMove move;
  };
  std::vector<Move> publishes, fetches;
  for (int i = 0; i < bindings.size(); ++i) {
    const CudaBindings::Advancing place = bindings.advancing(i);
    if (!bindings.bound(i) || place.stride_bytes == 0) continue;
    const int64_t bytes = bindings.slot(i).bytes;
    if (bindings.slot(i).role == CudaSlot::kInput) {
      fetches.push_back(
          {i, {bindings.at(i), place.base, place.stride_bytes, bytes}});
    } else if (!begin) {
      publishes.push_back(
          {i, {place.base, bindings.at(i), place.stride_bytes, bytes}});
    }
  }
  std::vector<CudaNode> nodes;
  if (publishes.empty() && fetches.empty()) return nodes;
  size_t published = 0, fetched = 0;
  bool counted = begin;
  // The step is counted after the last publish and before the first fetch.
  while (published < publishes.size() || fetched < fetches.size() || !counted) {
    cuda::BoundaryParams params = {};
    CudaNode node;
    node.label = begin ? "fetch" : "step boundary";
    node.writes = {kControlPlace};
    params.control = static_cast<cuda::StepControl*>(bindings.control());
    int used = 0;
    while (published < publishes.size() && used < cuda::kMaxBoundaryMoves) {
      node.reads.push_back(publishes[published].slot);
      params.moves[used++] = publishes[published++].move;
      ++params.publishes;
    }
    if (published == publishes.size()) {
      params.advance = counted ? 0 : 1;
      counted = true;
      while (fetched < fetches.size() && used < cuda::kMaxBoundaryMoves) {
        node.writes.push_back(fetches[fetched].slot);
        params.moves[used++] = fetches[fetched++].move;
        ++params.fetches;
      }
    }
    node.launch = cuda::StepBoundary(params);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace onestep
