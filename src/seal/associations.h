// All peers of one transport: seals what goes to a slot, and opens what comes from one.
//
// Sans-IO: no socket, no clock, no thread. Nothing is allocated but by meet() and where keys
// change. A transport and the simulator drive this same class.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "seal/association.h"

namespace leeway::seal {

struct Counters {
  std::uint64_t sealed = 0;  // datagrams
  std::uint64_t opened = 0;
  std::uint64_t phases = 0;                        // that began and that the peer was heard in
  std::array<std::uint64_t, kRefusals> refused{};  // by Refusal

  std::uint64_t refused_for(Refusal reason) const {
    return refused[static_cast<std::size_t>(reason)];
  }
};

class Associations {
 public:
  // `exchange` outlives it.
  explicit Associations(std::uint8_t lane = 0, const Rotation& rotation = {},
                        KeyExchange& exchange = x25519())
      : lane_(lane), rotation_(rotation), exchange_(exchange) {}

  // The process in this slot, for good, by the keys of one meeting: needs_keys(slot, meeting). Two
  // processes may meet in several groups at once, and end these meetings in different orders. So
  // keys of all meetings are held until the peer was heard. What is sealed for a peer that was
  // heard is sealed with the least meeting's keys of those that it was heard with, and both ends
  // find the same; for one that was not, with the latest meeting's.
  void meet(Instant now, Rank slot, const PairKeys& keys, const CipherMaker& maker,
            const keys::Key& meeting = {});
  bool knows(Rank slot) const { return slot < by_slot_.size() && !by_slot_[slot].met.empty(); }
  // Nothing that the peer in the slot sealed was opened so far, and this meeting's keys are new.
  bool needs_keys(Rank slot, const keys::Key& meeting) const;

  // Seals a train for its receiver, which is known: datagrams of segment_bytes + kOverheadBytes,
  // one behind another. Gives how many bytes of `out` they take: sealed_bytes(train).
  std::size_t seal(Instant now, const Train& train, MutableByteSpan out);
  static std::size_t sealed_bytes(const Train& train);

  // A path message for a peer that is known. Gives how many bytes of `out` it takes:
  // kOverheadBytes more than `message`.
  std::size_t seal_path_message(Rank slot, ByteSpan message, MutableByteSpan out);
  // The same, of a message in pieces.
  std::size_t seal_path_message(Rank slot, std::span<const Slice> pieces, MutableByteSpan out);

  // Opens a datagram of the core that came from this slot's address, in place. Empty: refused and
  // counted, or a message.
  MutableByteSpan open(Instant now, Rank slot, MutableByteSpan datagram);

  struct Opened {
    Rank from = kNoRank;    // whose it is; kNoRank: refused and counted
    MutableByteSpan bytes;  // what was sealed
    bool path_message = false;
    bool newest = false;  // no later one was opened before
  };
  // The same, where addresses of peers may change: the tag alone says whose a datagram is. `hint`:
  // whose address it came from; kNoRank: nobody's. Messages about keys have no bytes left.
  Opened open_from_anywhere(Instant now, Rank hint, MutableByteSpan datagram);

  // Keys change by messages of their own (WIRE 8.5), and are erased when their time is over.
  void on_wake(Instant now);
  Instant next_wake() const { return wake_at_; }
  struct Outgoing {
    Rank slot = kNoRank;
    ByteSpan datagram;  // sealed; until the next call
  };
  bool has_messages() const { return !messages_.empty(); }
  // What is to go now where datagrams of the slot go; nothing: no more.
  std::optional<Outgoing> poll_message();

  const Counters& counters() const { return counters_; }
  // By which the peer is sent to. Null: not met.
  const Association* at(Rank slot) const {
    return knows(slot) ? &by_slot_[slot].sending() : nullptr;
  }

 private:
  struct Met {
    keys::Key meeting{};
    std::unique_ptr<Association> association;
    bool heard = false;
  };
  struct Peer {
    std::vector<Met> met;
    std::uint32_t sends_by = 0;
    Association& sending() const { return *met[sends_by].association; }
  };
  struct Entry {
    std::uint32_t tag = 0;
    Rank slot = kNoRank;
    std::uint32_t met = 0;  // of the peer's
  };

  Opened open_for(Instant now, Rank slot, bool anywhere, MutableByteSpan datagram);
  Refusal open_by(Instant now, const Entry& entry, const Header& header, MutableByteSpan datagram);
  bool take_message(Instant now, const Entry& entry, ByteSpan bytes);
  Association& association_of(const Entry& entry) const {
    return *by_slot_[entry.slot].met[entry.met].association;
  }
  void wake_by(Instant when) { wake_at_ = std::min(wake_at_, when); }
  Refusal decode(ByteSpan datagram, Header& header) const;
  template <typename Visitor>
  void for_each_with(std::uint32_t tag, const Visitor& visit) const;
  void insert(Entry entry);
  void grow();

  const std::uint8_t lane_;
  const Rotation rotation_;
  KeyExchange& exchange_;
  Instant wake_at_ = Instant::infinite_future();
  std::vector<Entry> messages_;  // whose associations have one to send
  std::array<std::byte, Association::kMessageBytesMax> message_;
  std::vector<Peer> by_slot_;
  // By tag, open addressing, at most half full. Two peers may have the same tag.
  std::vector<Entry> by_tag_;
  std::size_t entries_ = 0;
  std::vector<std::byte> copy_;  // of a datagram that may be one of several peers'
  Counters counters_;
};

}  // namespace leeway::seal
