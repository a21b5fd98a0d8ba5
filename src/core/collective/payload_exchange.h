// Connects one operation with the caller's payload source and sink, which encode and decode its
// elements (include/leeway/payload.h). Knows which chunks are encoded, where they lie, and where
// arriving packets land.
//
// Only ask() asks source and sink how far they are, chunk by chunk of each block.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bitmap.h"
#include "base/time.h"
#include "collective/operation_plan.h"
#include "leeway/payload.h"
#include "schedule/packet_cursor.h"

namespace leeway::collective {

// What source and sink agreed to when the operation was submitted. `landing`: the sink's memory.
struct PayloadAgreement {
  PayloadSource* source = nullptr;
  PayloadSink* sink = nullptr;
  PayloadLayout layout;
  MutableByteSpan landing;
};

// Returns how this rank's operation is cut. `number`: the collective's number.
PayloadLayout layout_of(const OperationPlan& plan, const protocol::Endpoint& endpoint,
                        std::uint32_t number);

class PayloadExchange {
 public:
  // Begins an operation; no chunk is encoded yet. The agreement must outlive the operation. `name`
  // is for error texts, such as "all_reduce".
  void begin(const PayloadAgreement& agreement, const char* name);

  // ---- outgoing packets ----
  // Returns the encoded bytes of a packet. Its chunk must be ready.
  ByteSpan packet(PayloadHalf half, Rank owner, PacketIndex index) const;
  // Returns which chunks of our contributions are ready, by owner.
  std::span<const Bitmap> ready() const { return ready_; }
  // Queues a chunk of our own block, so that ask() will ask the source for it.
  void expect_spread(ChunkIndex chunk) { expected_.push(chunk); }

  struct Progress {
    bool contributions = false;  // some became ready
    bool spread = false;
    Status fault;  // the source broke its contract
  };
  // Asks source and sink how far they are. Pushes chunks of our own block that are ready now to
  // `available`.
  Progress ask(Instant now, schedule::ChunkQueue& available);

  // ---- arriving packets ----
  // Returns where a packet from rank `from` lands. In the reduce half the packet is a contribution
  // to our block, in the spread half it is part of that rank's block.
  std::byte* place(PayloadHalf half, Rank from, PacketIndex index) const;
  // Sets the factors, by rank, with which the sink must multiply contributions to a packet of our
  // block.
  void set_scales(PacketIndex index, std::span<const float> scales);
  // Hands a chunk of our block to the sink. The factors of all its packets must be set.
  void hand_over_reduced(ChunkIndex index);
  // Call it when a packet of another rank's block has landed.
  void note_spread(Rank owner, PacketIndex index);
  // Hands incomplete chunks of the other ranks' blocks to the sink. Call it when no more packets of
  // these blocks will come.
  void settle_spread();

  // ---- the end ----
  // Returns true if every chunk is encoded, and every chunk that was handed over is used.
  bool over() const { return unencoded_ == 0 && all_used(); }
  bool all_used() const { return used_ == handed_.size(); }
  // Time at which ask() last found that chunks had been handed over.
  Instant handed_at() const { return handed_at_; }
  // Returns text that names the chunk that the source or sink must deliver next; empty if none.
  std::string awaited() const;
  Duration poll_every() const { return agreement_->source->poll_every(); }

 private:
  struct Encoded {
    std::vector<const std::byte*> chunks;  // by chunk; null if not ready
    std::uint32_t count = 0;
  };
  const PayloadLayout& layout() const { return agreement_->layout; }
  PayloadChunk next_contribution(Rank owner) const;
  bool take_encoded(const PayloadChunk& chunk, Encoded& block, Status& fault);
  void hand_over(const PayloadChunk& chunk);
  void hand_over_spread(Rank owner, std::uint32_t index);
  bool contributes_to(Rank owner) const;

  const PayloadAgreement* agreement_ = nullptr;
  const char* name_ = "";
  std::vector<Encoded> contributions_;  // by owner
  std::vector<Bitmap> ready_;           // the ready ones of contributions_, for the protocol
  Encoded spread_;                      // our own block
  schedule::ChunkQueue expected_;
  std::uint64_t unencoded_ = 0;               // chunks that the source has not encoded
  std::vector<std::size_t> contribution_at_;  // in landing memory, by sender
  std::vector<std::size_t> spread_at_;        // by owner
  std::vector<float> scales_;                 // by rank, then by packet of our block
  std::vector<Bitmap> landed_;                // packets of other ranks' blocks
  // Number of packets that have not landed, by owner and chunk.
  std::vector<std::vector<std::uint16_t>> chunk_left_;
  std::vector<float> arrived_;  // packets of one chunk, as factors 1 or 0
  std::vector<PayloadContribution> terms_;
  std::vector<PayloadChunk> handed_;
  std::size_t used_ = 0;
  std::size_t handed_seen_ = 0;  // handed_.size() at the latest ask()
  Instant handed_at_{0};
};

}  // namespace leeway::collective
