// SPDX-License-Identifier: Apache-2.0
// Tier persistent of the hidden-split step: one cluster of blocks runs many
// steps in one launch. Weights stay in shared memory; bulk copies prefetch the
// bytes of the next batch; each block pushes its partial logits to all blocks,
// which sum them in the same order and so have the same dlogits and b2.
//
// Inboxes, outboxes and x are double-buffered by the parity of the step. Two
// buffers are enough: a block sends step t + 1 only after it has read all of
// step t, and step t + 2 only after it has received all of t + 1; by then every
// block has read, and has been sent, all of step t. The inbox of step t + 1 is
// unused until this block has sent step t, so the forward pass of step t keeps
// its partial sums there.
//
// Expected of a step, with 8 columns a block and kSplit at 784-128-10, batch
// 32: forward 0.5 us, push and wait 0.3, loss and e 0.3, updates 0.6, and in
// all 6 block barriers 0.15; no load from global memory is waited for.
#ifndef ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_PERSISTENT_CUH_
#define ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_PERSISTENT_CUH_

#include "kernels/cuda/hidden_split/head.cuh"

namespace onestep::cuda::hidden_split {

// A release to the host and a load from it take longer than a step, so the
// kernel makes one of each every kSignalSteps steps.
inline constexpr int kSignalSteps = 8;
inline constexpr int kHeaderFloats = 4;  // of a message: the stop flag

template <int kTiles, int kParts>
class PersistentBlock {
 public:
  ONESTEP_DEVICE explicit PersistentBlock(const PersistentArgs& args)
      : args_(args),
        step_(OfModel(args.step)),
        layout_(args.step.layout),
        rank_(static_cast<int>(dev::ClusterRank())),
        bulk_(args.step.features % 16 == 0 &&
              Aligned(args.step.buffers.images, 16)) {}

  ONESTEP_DEVICE void Run() {
    Begin();
    int64_t done = 0;
    bool stop = false;
    while (done < args_.steps && !stop) stop = Step(done++);
    // A bulk copy that was issued must complete before the block ends.
    if (bulk_ && done < args_.steps) Wait(XBarrier(done), done);
    dev::SyncCluster();
    End(done);
  }

 private:
  ONESTEP_DEVICE dev::Barrier* XBarrier(int64_t t) const {
    return At<dev::Barrier>(layout_.barriers) + (t & 1);
  }
  ONESTEP_DEVICE dev::Barrier* InboxBarrier(int64_t t) const {
    return At<dev::Barrier>(layout_.barriers) + 2 + (t & 1);
  }
  ONESTEP_DEVICE uint8_t* X(int64_t t) const {
    return At<uint8_t>(layout_.x) + (t & 1) * layout_.x_bytes;
  }
  ONESTEP_DEVICE int32_t* Labels(int64_t t) const {
    return At<int32_t>(layout_.labels) + (t & 1) * layout_.rows;
  }
  ONESTEP_DEVICE float* Outbox(int64_t t) const {
    return At<float>(layout_.outbox + (t & 1) * layout_.message);
  }
  ONESTEP_DEVICE float* Inbox(int64_t t, int block) const {
    return At<float>(layout_.inbox + (t & 1) * layout_.inbox_bytes +
                     block * layout_.message);
  }
  ONESTEP_DEVICE const int32_t* Indices(int64_t t) const {
    return IndicesOf(step_, step_.offset + t);
  }

  ONESTEP_DEVICE void Wait(dev::Barrier* barrier, int64_t t) const {
    const uint32_t parity = (t >> 1) & 1;
    if (!dev::WaitParity(barrier, parity, args_.signals.timeout_ns)) {
      dev::Trap();
    }
  }

  // The row that the thread loads, if there is one. A warp issues bulk copies
  // lane after lane, so rows, and blocks to push to, go to the warps in turn.
  ONESTEP_DEVICE int Row() const { return Lane() * kWarps + Warp(); }
  ONESTEP_DEVICE bool has_row() const { return Row() < step_.batch; }

  ONESTEP_DEVICE int32_t LoadIndex(int64_t t) const {
    return t < args_.steps && has_row() ? dev::LoadReadOnly(Indices(t) + Row())
                                        : 0;
  }

  // Loads the weights, sets up the barriers and loads what step 0 reads.
  ONESTEP_DEVICE void Begin() {
    const int column0 = rank_ * layout_.columns;
    const W1Slice slice(step_, column0, 0);
    W1Load<kTiles> load(slice);
    HeadLoad head(step_, step_.buffers.w2, step_.buffers.b1, step_.buffers.b2,
                  column0);
    for (int i = 0; i < 2; ++i) {
      ZeroPads(layout_, step_.batch, step_.features, X(i));
    }
    load.Finish(At<float>(layout_.w1));
    head.Finish();
    if (Thread() < 4) {
      dev::InitBarrier(At<dev::Barrier>(layout_.barriers) + Thread(), 1);
      dev::FenceBarrierInit();
    }
    if (PollsStop()) stop_ = dev::LoadSystem(args_.signals.stop);
    index_ = LoadIndex(0);
    dev::SyncCluster();
    Prefetch(0);
    KeepLabel(0);
    lr_ = next_lr_;
    dev::SyncBlock();
  }

  ONESTEP_DEVICE bool PollsStop() const {
    return rank_ == 0 && Thread() == 0 && args_.signals.stop != nullptr;
  }

  // Begins to load what step t reads; index_ becomes the index of step t + 1.
  ONESTEP_DEVICE void Prefetch(int64_t t) {
    if (t >= args_.steps) return;
    const HiddenSplitBuffers& buffers = step_.buffers;
    if (bulk_) {
      if (Thread() == 0) {
        dev::ArriveExpect(XBarrier(t), step_.batch * step_.features);
      }
      if (has_row()) {
        dev::BulkLoad(X(t) + Row() * layout_.x_stride,
                      buffers.images + int64_t{index_} * step_.features,
                      step_.features, XBarrier(t));
      }
    } else {
      GatherRows(step_, Indices(t), step_.batch, 0, step_.features, X(t));
    }
    next_label_ = has_row() ? dev::LoadReadOnly(buffers.labels + index_) : 0;
    next_lr_ =
        dev::LoadReadOnly(buffers.lr + (step_.offset + t) * buffers.lr_stride);
    index_ = LoadIndex(t + 1);
  }
  ONESTEP_DEVICE void KeepLabel(int64_t t) const {
    if (has_row()) Labels(t)[Row()] = next_label_;
  }

  // Pushes the partial logits of step t and the stop flag to all blocks.
  ONESTEP_DEVICE void Send(int64_t t) const {
    PartialLogits<kTiles>(step_, step_.batch, Outbox(t) + kHeaderFloats);
    if (Thread() == 0) *reinterpret_cast<uint32_t*>(Outbox(t)) = stop_;
    dev::FenceAsync();
    dev::SyncBlock();
    if (Thread() == 0) {
      dev::ArriveExpect(InboxBarrier(t), step_.blocks * layout_.message);
    }
    static_assert(kWarps >= 16);  // blocks of a cluster
    if (Lane() == 0 && Warp() < step_.blocks) {
      dev::PushToBlock(Inbox(t, rank_), Outbox(t), layout_.message,
                       InboxBarrier(t), Warp());
    }
  }

  // Returns whether the host has stopped the launch after this step.
  ONESTEP_DEVICE bool Step(int64_t t) {
    float* row_loss = At<float>(layout_.row_loss);
    float* row_correct = At<float>(layout_.row_correct);
    if (bulk_) Wait(XBarrier(t), t);
    ForwardHidden<kTiles, kParts>(
        step_, X(t), step_.batch,
        Smaller(layout_.columns, step_.hidden - rank_ * layout_.columns),
        Inbox(t + 1, 0));
    Send(t);
    Prefetch(t + 1);
    if (PollsStop() && t % kSignalSteps == 0) {
      stop_ = dev::LoadSystem(args_.signals.stop);
    }
    Wait(InboxBarrier(t), t);
    const bool stop = *reinterpret_cast<const uint32_t*>(Inbox(t, 0)) != 0;
    LossGrad<false>(step_, {.partials = Inbox(t, 0) + kHeaderFloats,
                            .stride = layout_.message / 4,
                            .b2 = At<float>(layout_.b2),
                            .labels = Labels(t),
                            .lr = lr_,
                            .rows = step_.batch,
                            .padded_rows = To16(step_.batch),
                            .d = At<float>(layout_.d),
                            .row_loss = row_loss,
                            .row_correct = row_correct});
    dev::SyncBlock();
    HiddenGrad<kTiles, kParts>(step_, step_.batch);
    dev::SyncBlock();
    UpdateHead<kTiles>(step_, step_.batch, At<float>(layout_.w2));
    UpdateFirst<kTiles, kParts, 4>(step_, X(t), step_.batch);
    if (rank_ == 0 && Warp() == kWarps - 1) {
      WriteResults<false>(step_, step_.offset + t, row_loss, row_correct);
      if (Lane() == 0 && (t + 1) % kSignalSteps == 0) Publish(t + 1);
    }
    KeepLabel(t + 1);
    lr_ = next_lr_;
    dev::SyncBlock();
    return stop;
  }

  ONESTEP_DEVICE void Publish(int64_t done) const {
    if (args_.signals.progress == nullptr) return;
    dev::StoreSystem(args_.signals.progress, static_cast<uint32_t>(done));
  }

  // REQUIRES: all pushes to all blocks are complete.
  ONESTEP_DEVICE void End(int64_t done) const {
    const int column0 = rank_ * layout_.columns;
    StoreW1<kTiles>(W1Slice(step_, column0, 0), At<float>(layout_.w1));
    StoreW2(step_, At<float>(layout_.w2), column0, step_.buffers.w2);
    StoreB1(step_, column0);
    if (rank_ != 0) return;
    StoreB2(step_, step_.buffers.b2);
    if (Thread() == 0) Publish(done);
  }

  const PersistentArgs& args_;
  const StepArgs step_;
  const Layout& layout_;
  const int rank_;
  const bool bulk_;
  int32_t index_ = 0, next_label_ = 0;  // of the thread's row
  float lr_ = 0, next_lr_ = 0;
  uint32_t stop_ = 0;
};

// Reads images, labels, indices and lr of the steps; writes w1, b1, w2, b2 at
// the end, loss and correct of every step. Grid: the cluster.
template <int kTiles, int kParts>
ONESTEP_KERNEL(kThreads, 1)
void HiddenSplitPersistentKernel(PersistentArgs args) {
  if constexpr (dev::kHasClusters) {
    PersistentBlock<kTiles, kParts>(args).Run();
  } else {
    dev::Trap();
  }
}

}  // namespace onestep::cuda::hidden_split

#endif  // ONESTEP_KERNELS_CUDA_HIDDEN_SPLIT_PERSISTENT_CUH_
