// All operations of this rank that the protocol knows: which are open, how they are found, and how
// far their numbers have come.
//
// A round that ends stays in the table, marked, until take_ended(). So a loop over rounds never
// meets one that vanished.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
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

  // Opens a round with the next number. All collectives share one series of numbers; messages have
  // one for each peer, tag and direction. Returns null when limits::kOpenCollectivesMax collectives
  // are open; a message always has room. Allocates when more rounds are open than ever before.
  Round* open(const RoundPlan& plan, RoundClient& client, Instant now);

  // Returns an open round that has not ended, or null. A collective is found by `kind` and
  // `number`, a message by all arguments.
  Round* find(FlowKind kind, std::uint32_t number, std::uint32_t message_tag, Rank peer,
              bool as_sender) const;

  // Open collectives, oldest first. Some may have ended.
  std::span<Round* const> collectives() const { return {open_.data(), open_count_}; }
  // Returns null before the first message.
  PeerMessages* messages(Rank peer) const { return messages_[peer].get(); }
  // Makes the messages of this peer if there are none.
  PeerMessages& make_messages(Rank peer);
  // Collectives and the messages with this peer that talk, oldest first; some may have ended. Valid
  // until the next open() or take_ended().
  class WithPeer {
   public:
    class Iterator {
     public:
      using iterator_category = std::forward_iterator_tag;
      using value_type = Round*;
      using difference_type = std::ptrdiff_t;
      using pointer = Round* const*;
      using reference = Round*;

      Round* operator*() const { return takes_message() ? *message_ : *collective_; }
      Iterator& operator++() {
        takes_message() ? ++message_ : ++collective_;
        return *this;
      }
      friend bool operator==(const Iterator& a, const Iterator& b) {
        return a.collective_ == b.collective_ && a.message_ == b.message_;
      }

     private:
      friend WithPeer;
      Iterator(const WithPeer& rounds, Round* const* collective, Round* const* message)
          : rounds_(&rounds), collective_(collective), message_(message) {}
      bool takes_message() const {
        if (message_ == rounds_->messages_end_) return false;
        return collective_ == rounds_->collectives_end_ ||
               (*message_)->opening < (*collective_)->opening;
      }
      const WithPeer* rounds_;
      Round* const* collective_;
      Round* const* message_;
    };
    Iterator begin() const { return {*this, collectives_, messages_}; }
    Iterator end() const { return {*this, collectives_end_, messages_end_}; }

   private:
    friend RoundTable;
    WithPeer(std::span<Round* const> collectives, std::span<Round* const> messages)
        : collectives_(collectives.data()),
          collectives_end_(collectives.data() + collectives.size()),
          messages_(messages.data()),
          messages_end_(messages.data() + messages.size()) {}
    Round* const* collectives_;
    Round* const* collectives_end_;
    Round* const* messages_;
    Round* const* messages_end_;
  };
  WithPeer with(Rank peer) const {
    const PeerMessages* const messages = this->messages(peer);
    return {collectives(), messages == nullptr ? std::span<Round* const>() : messages->talking()};
  }

  // Returns the open collective in this slot, 0 .. kOpenCollectivesMax - 1, or null.
  Round* in_slot(std::size_t slot) const;

  // Marks a round as ended. Nothing more happens to it.
  void end(Round& round);
  bool any_ended() const { return ended_taken_ < ended_.size(); }
  // Takes a round that has ended out of the table; any_ended() must be true. The round's memory is
  // reused.
  RoundClient* take_ended();
  // Takes a message that has begun to talk, or returns null if there is none.
  Round* take_starting();

  // Visits all collectives and all messages with this peer that take_ended() has not taken out.
  template <typename Visit>
  void for_each_with(Rank peer, const Visit& visit) const {
    for (Round* const round : collectives()) visit(*round);
    if (const PeerMessages* const messages = this->messages(peer)) messages->for_each_open(visit);
  }

  bool idle() const { return open_count() == 0; }
  std::size_t open_count() const { return open_count_ + message_count_; }
  std::size_t collective_count() const { return open_count_; }
  std::uint32_t opened_below() const { return opened_below_; }  // number of the next collective
  std::uint64_t collectives_opened() const { return collectives_opened_; }
  // This rank wants nothing more of collectives below this number.
  std::uint32_t settled_below() const { return settled_below_; }
  void refresh_settled_below();
  // Notes that a collective failed here because ranks make different calls. settled_below() does
  // not pass this collective as long as reports list the failure: a confirmation would let a peer
  // that has not heard of the failure return success.
  void hold_settled_below(std::uint32_t number) { held_[held_count_++ % held_.size()] = number; }
  // Returns true if this rank may have closed the collective before all peers had confirmed it.
  bool may_have_given_up(std::uint32_t number) const { return after(gave_up_below_, number); }
  // Number of receives posted for this peer's messages of a tag.
  std::uint32_t receives_opened(Rank peer, std::uint32_t tag) const {
    return next_message(peer, tag, false);
  }
  // Returns false if limits::kTagsPerPeerMax other tags were used with the peer.
  bool has_room_for(Rank peer, std::uint32_t tag) const {
    const PeerMessages* const messages = this->messages(peer);
    return messages == nullptr || messages->streams() < limits::kTagsPerPeerMax ||
           messages->find(tag) != nullptr;
  }
  // Number of the next message to or from this peer.
  std::uint32_t next_message(Rank peer, std::uint32_t tag, bool send) const {
    const MessageStream* const stream = this->stream(peer, tag);
    if (stream == nullptr) return 0;
    return send ? stream->sends_opened : stream->receives_opened;
  }
  // Returns null if no message of the tag was opened.
  MessageStream* stream(Rank peer, std::uint32_t tag) const {
    return messages_[peer] == nullptr ? nullptr : messages_[peer]->find(tag);
  }

 private:
  std::uint32_t take_number(const RoundPlan& plan);

  int size_;
  std::vector<std::unique_ptr<Round>> rounds_;
  std::array<Round*, limits::kOpenCollectivesMax> slots_{};  // rounds of collectives, once made
  std::uint32_t slot_count_ = 0;
  std::vector<Round*> free_collectives_;
  std::vector<Round*> free_messages_;
  std::array<Round*, limits::kOpenCollectivesMax> open_{};  // oldest first
  std::size_t open_count_ = 0;
  std::vector<std::unique_ptr<PeerMessages>> messages_;  // by peer
  std::size_t message_count_ = 0;
  std::vector<Round*> starting_;  // messages that have begun to talk
  std::vector<Round*> ended_;
  std::size_t ended_taken_ = 0;  // places of ended_ that were taken out
  std::uint64_t openings_ = 0;
  std::uint64_t collectives_opened_ = 0;
  std::uint32_t opened_below_ = 0;
  std::uint32_t settled_below_ = 0;
  std::array<std::uint32_t, limits::kOpenCollectivesMax> held_{};  // hold_settled_below(), a ring
  std::size_t held_count_ = 0;
  std::uint32_t gave_up_below_ = 0;  // one above the latest collective that was given up
};

}  // namespace leeway::protocol
