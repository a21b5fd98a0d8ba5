// Between one operation and the source and sink that encode and decode its elements elsewhere
// (include/leeway/payload.h): which chunks are encoded, where they lie, and what lands where.
//
// It asks the source and the sink when it is told to, never by itself, and asks about one chunk of
// each block at a time.
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

// What source and sink were told when the operation was submitted.
struct PayloadAgreement {
  PayloadSource* source = nullptr;
  PayloadSink* sink = nullptr;
  PayloadLayout layout;
  MutableByteSpan landing;
};

// How a planned operation is cut on this rank. `number`: its place among the collectives.
PayloadLayout layout_of(const OperationPlan& plan, const protocol::Endpoint& endpoint,
                        std::uint32_t number);

class PayloadExchange {
 public:
  // Nothing is encoded yet. The agreement outlives the operation. `name`: "all_reduce".
  void begin(const PayloadAgreement& agreement, const char* name);

  // ---- what leaves ----
  // Encoded bytes of a packet of a chunk that is ready.
  ByteSpan packet(PayloadHalf half, Rank owner, PacketIndex index) const;
  // Chunks of contributions that are ready, by owner.
  std::span<const Bitmap> ready() const { return ready_; }
  // The source is asked for this chunk of our own block from now on, behind those before it.
  void expect_spread(ChunkIndex chunk) { expected_.push(chunk); }

  struct Progress {
    bool contributions = false;  // some became ready
    bool spread = false;
    Status fault;  // the source broke its contract
  };
  // Asks source and sink. Chunks of our own block that became ready are pushed to `available`.
  Progress ask(Instant now, schedule::ChunkQueue& available);

  // ---- what arrives ----
  // Where a packet lands: contributions of `from` to our block, or its own block.
  std::byte* place(PayloadHalf half, Rank from, PacketIndex index) const;
  // Factor of a contribution to a packet of our block, once it is known.
  void set_scales(PacketIndex index, std::span<const float> scales);
  // A chunk of our block of which all factors are set.
  void hand_over_reduced(ChunkIndex index);
  // A packet of another rank's block has landed.
  void note_spread(Rank owner, PacketIndex index);
  // Nothing more will come of other ranks' blocks: hands over what is incomplete.
  void settle_spread();

  // ---- the end ----
  // Everything is encoded, and everything that was handed over is used.
  bool over() const { return unencoded_ == 0 && all_used(); }
  bool all_used() const { return used_ == handed_.size(); }
  // When chunks were last handed over, as ask() saw it.
  Instant handed_at() const { return handed_at_; }
  // What is awaited of the source or the sink, for an error text; empty: nothing.
  std::string awaited() const;
  Duration poll_every() const { return agreement_->source->poll_every(); }

 private:
  struct Encoded {
    std::vector<const std::byte*> chunks;  // null: not ready
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
  std::vector<Bitmap> ready_;           // of them, for the protocol
  Encoded spread_;                      // of our own block
  schedule::ChunkQueue expected_;
  std::uint64_t unencoded_ = 0;                         // chunks
  std::vector<std::size_t> contribution_at_;            // in landing memory, by sender
  std::vector<std::size_t> spread_at_;                  // by owner
  std::vector<float> scales_;                           // by rank, then by packet of our block
  std::vector<Bitmap> landed_;                          // packets of other ranks' blocks
  std::vector<std::vector<std::uint16_t>> chunk_left_;  // of them, by chunk
  std::vector<float> arrived_;                          // of one chunk, as factors
  std::vector<PayloadContribution> terms_;
  std::vector<PayloadChunk> handed_;
  std::size_t used_ = 0;
  std::size_t handed_seen_ = 0;  // by ask()
  Instant handed_at_{0};
};

}  // namespace leeway::collective
