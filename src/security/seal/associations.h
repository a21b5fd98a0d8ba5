// The associations with all peers of one transport: seals datagrams to a slot, and opens those from
// it.
//
// It has no socket, clock or thread, so a transport and the simulator can drive the same class.
// Only meet() and changes of keys allocate.
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
  std::uint64_t phases = 0;                        // that began, and in which the peer was heard
  std::array<std::uint64_t, kRefusals> refused{};  // by Refusal

  std::uint64_t refused_for(Refusal reason) const {
    return refused[static_cast<std::size_t>(reason)];
  }
};

class Associations {
 public:
  // `exchange` must outlive the object.
  explicit Associations(std::uint8_t lane = 0, const Rotation& rotation = {},
                        KeyExchange& exchange = x25519())
      : lane_(lane), rotation_(rotation), exchange_(exchange) {}

  // Adds the process in this slot with the keys of one meeting. It cannot be removed. Requires
  // needs_keys(slot, meeting). Two processes may meet in several groups at once, and end these
  // meetings in different orders. So until the peer is heard, datagrams are opened with the keys of
  // any meeting, and sealed with those of the latest. Later, datagrams are sealed with the keys of
  // the least `meeting` by which the peer was heard, so both ends choose the same.
  void meet(Instant now, Rank slot, const PairKeys& keys, const CipherMaker& maker,
            const keys::Key& meeting = {});
  bool knows(Rank slot) const { return slot < by_slot_.size() && !by_slot_[slot].met.empty(); }
  // Returns whether meet() may add this meeting's keys: they are new, and no datagram of the peer
  // in the slot was opened so far.
  bool needs_keys(Rank slot, const keys::Key& meeting) const;

  // Seals a batch for its receiver, which must be known. Writes datagrams of segment_bytes +
  // kOverheadBytes to `out`, end to end. Returns how many bytes they take: sealed_bytes(train).
  std::size_t seal(Instant now, const Train& train, MutableByteSpan out);
  static std::size_t sealed_bytes(const Train& train);

  // Seals a path message for a known peer. Returns how many bytes of `out` it takes: kOverheadBytes
  // more than `message`.
  std::size_t seal_path_message(Rank slot, ByteSpan message, MutableByteSpan out);
  // Seals a path message that lies in pieces.
  std::size_t seal_path_message(Rank slot, std::span<const Slice> pieces, MutableByteSpan out);

  // Opens in place a datagram that came from this slot's address. Returns an empty span if it was
  // refused and counted, or was a path message.
  MutableByteSpan open(Instant now, Rank slot, MutableByteSpan datagram);

  struct Opened {
    Rank from = kNoRank;    // the peer that sealed it; kNoRank if refused and counted
    MutableByteSpan bytes;  // the bytes that were sealed
    bool path_message = false;
    bool newest = false;  // no datagram with a larger number was opened before
  };
  // For transports whose peers may change addresses: opens a datagram of any peer that has its tag.
  // `hint`: the peer at whose address it came from, or kNoRank. A message about keys is taken in
  // here, so no bytes are returned.
  Opened open_from_anywhere(Instant now, Rank hint, MutableByteSpan datagram);

  // Prepares messages that change keys (WIRE 8.5), and erases keys whose time is over.
  void on_wake(Instant now);
  Instant next_wake() const { return wake_at_; }
  struct Outgoing {
    Rank slot = kNoRank;
    ByteSpan datagram;  // sealed; valid until the next call
  };
  bool has_messages() const { return !messages_.empty(); }
  // Returns the next message; send it where datagrams of the slot go. Returns nullopt if none is
  // left.
  std::optional<Outgoing> poll_message();

  const Counters& counters() const { return counters_; }
  // Returns the association that seals datagrams to the peer; null if the peer was not met.
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
    std::uint32_t met = 0;  // index into the peer's meetings
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
  std::vector<Entry> messages_;  // associations that have a message to send
  std::array<std::byte, Association::kMessageBytesMax> message_;
  std::vector<Peer> by_slot_;
  // Hash table by tag, with open addressing, at most half full. Two peers may have the same tag.
  std::vector<Entry> by_tag_;
  std::size_t entries_ = 0;
  std::vector<std::byte> copy_;  // a datagram that may be from one of several peers
  Counters counters_;
};

}  // namespace leeway::seal
