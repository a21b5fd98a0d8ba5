// Connects one operation with the source and sink that encode and decode its elements elsewhere
// (include/leeway/payload.h). It knows which chunks are encoded, where they lie, and where arriving
// packets land.
//
// It asks the source and the sink only within ask(), and about one chunk of each block at a time.
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

// Result of the source's and the sink's setup when the operation was submitted.
struct PayloadAgreement {
  PayloadSource* source = nullptr;
  PayloadSink* sink = nullptr;
  PayloadLayout layout;
  MutableByteSpan landing;
};

// Returns how a planned operation is cut on this rank. `number`: its place among the collectives.
PayloadLayout layout_of(const OperationPlan& plan, const protocol::Endpoint& endpoint,
                        std::uint32_t number);

class PayloadExchange {
 public:
  // Begins an operation of which no chunk is encoded yet. The agreement must outlive it. `name` is
  // for errors, such as "all_reduce".
  void begin(const PayloadAgreement& agreement, const char* name);

  // ---- outgoing packets ----
  // Encoded bytes of a packet of a chunk that is ready.
  ByteSpan packet(PayloadHalf half, Rank owner, PacketIndex index) const;
  // Chunks of contributions that are ready, by owner.
  std::span<const Bitmap> ready() const { return ready_; }
  // Lets ask() ask the source for this chunk of our own block, after those named earlier.
  void expect_spread(ChunkIndex chunk) { expected_.push(chunk); }

  struct Progress {
    bool contributions = false;  // some became ready
    bool spread = false;
    Status fault;  // the source broke its contract
  };
  // Asks the source and the sink how far they are. Pushes chunks of our own block that became ready
  // to `available`.
  Progress ask(Instant now, schedule::ChunkQueue& available);

  // ---- arriving packets ----
  // Address where a packet lands: contributions of `from` to our block, or its own block.
  std::byte* place(PayloadHalf half, Rank from, PacketIndex index) const;
  // Sets the factors of the contributions to a packet of our block, by rank, once they are known.
  void set_scales(PacketIndex index, std::span<const float> scales);
  // Hands over a chunk of our block of which all factors are set.
  void hand_over_reduced(ChunkIndex index);
  // Call it when a packet of another rank's block has landed.
  void note_spread(Rank owner, PacketIndex index);
  // Hands over incomplete chunks. Call it when no more packets of other ranks' blocks will come.
  void settle_spread();

  // ---- the end ----
  // Returns true if every chunk is encoded, and every chunk that was handed over is used.
  bool over() const { return unencoded_ == 0 && all_used(); }
  bool all_used() const { return used_ == handed_.size(); }
  // When chunks were last handed over, as ask() saw it.
  Instant handed_at() const { return handed_at_; }
  // Names the chunk that the source or the sink has to deliver next, for an error text. Empty if
  // there is none.
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
  // Packets that have not landed, by owner and chunk.
  std::vector<std::vector<std::uint16_t>> chunk_left_;
  std::vector<float> arrived_;  // packets of one chunk, as factors 1 or 0
  std::vector<PayloadContribution> terms_;
  std::vector<PayloadChunk> handed_;
  std::size_t used_ = 0;
  std::size_t handed_seen_ = 0;  // handed_.size() at the latest ask()
  Instant handed_at_{0};
};

}  // namespace leeway::collective
