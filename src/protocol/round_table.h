// All operations of this rank that the protocol knows: which are open, how they are found, and how
// far their numbers have come.
//
// A round that ends stays in the table, marked, until take_ended(): whoever walks over rounds need
// not fear that one vanishes below his feet.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/limits.h"
#include "protocol/peer_messages.h"
#include "protocol/round.h"

namespace leeway::protocol {

class RoundTable {
 public:
  explicit RoundTable(int size);

  // The next operation of its numbering (collectives: one for all; messages: by peer and
  // direction). Null when limits::kOpenCollectivesMax collectives are open; a message always has
  // room. Allocates when more are open than ever before.
  Round* open(const RoundPlan& plan, RoundClient& client, Instant now);

  // An open round that has not ended; null: none. Messages: with `peer`, sent or received.
  Round* find(FlowKind kind, std::uint32_t number, Rank peer, bool as_sender) const;

  // Oldest first. Some may have ended.
  std::span<Round* const> collectives() const { return {open_.data(), open_count_}; }
  // Null before the first message.
  PeerMessages* messages(Rank peer) const { return messages_[peer].get(); }
  // Collectives and the messages with this peer that talk, oldest first; some may have ended.
  // Valid until the next open() or take_ended().
  class WithPeer {
   public:
    WithPeer(const WithPeer&) = delete;
    WithPeer& operator=(const WithPeer&) = delete;
    Round* const* begin() const { return first_; }
    Round* const* end() const { return first_ + count_; }

   private:
    friend RoundTable;
    WithPeer(const RoundTable& table, Rank peer)
        : first_(table.open_.data()), count_(table.open_count_) {
      if (const PeerMessages* messages = table.messages(peer)) merge(*messages);
    }
    void merge(const PeerMessages& messages);

    Round* const* first_;
    std::size_t count_;
    // Collectives and messages; not used where there are no messages
    std::array<Round*, limits::kOpenCollectivesMax + 2 * limits::kTalkingMessagesMax> merged_;
  };
  WithPeer with(Rank peer) const { return WithPeer(*this, peer); }

  // The open collective in this slot, in 0 .. kOpenCollectivesMax - 1; null: none.
  Round* in_slot(std::size_t slot) const;

  // Nothing more happens to it.
  void end(Round& round);
  bool any_ended() const { return !ended_.empty(); }
  // Takes out a round that has ended, while there is any; its memory serves again.
  struct Ended {
    RoundClient* client = nullptr;
    // The message whose turn to talk has come thereby; or null
    Round* next = nullptr;
  };
  Ended take_ended();

  std::size_t open_count() const { return open_count_ + message_count_; }
  std::size_t collective_count() const { return open_count_; }
  std::uint32_t opened_below() const { return opened_below_; }  // the next collective's number
  std::uint32_t settled_below() const {
    return settled_below_;
  }  // nothing is wanted of those below
  void refresh_settled_below();
  // Whether collectives up to this one may have been closed before all had confirmed them.
  bool may_have_given_up(std::uint32_t number) const { return after(gave_up_below_, number); }
  // Receives that were posted for this peer's messages.
  std::uint32_t receives_opened(Rank peer) const {
    return messages_[peer] == nullptr ? 0 : messages_[peer]->receives_opened;
  }
  // The next message's number.
  std::uint32_t next_message(Rank peer, bool send) const {
    const PeerMessages* messages = messages_[peer].get();
    if (messages == nullptr) return 0;
    return send ? messages->sends_opened : messages->receives_opened;
  }

 private:
  std::uint32_t take_number(const RoundPlan& plan);

  int size_;
  std::vector<std::unique_ptr<Round>> rounds_;
  std::array<Round*, limits::kOpenCollectivesMax> slots_{};  // made so far
  std::uint32_t slot_count_ = 0;
  std::vector<Round*> free_collectives_;
  std::vector<Round*> free_messages_;
  std::array<Round*, limits::kOpenCollectivesMax> open_{};  // oldest first
  std::size_t open_count_ = 0;
  std::vector<std::unique_ptr<PeerMessages>> messages_;  // by peer
  std::size_t message_count_ = 0;
  std::vector<Round*> ended_;
  std::uint64_t openings_ = 0;
  std::uint32_t opened_below_ = 0;
  std::uint32_t settled_below_ = 0;
  std::uint32_t gave_up_below_ = 0;  // behind the latest collective that was given up
};

}  // namespace leeway::protocol
