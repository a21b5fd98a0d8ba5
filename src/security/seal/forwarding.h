// Forwarding for others (WIRE 9.8): this process passes on sealed datagrams between two peers that
// have no path between them.
//
// It does no I/O. The seal of the hop proves which peer asks, so strangers get nothing forwarded. A
// peer asks by sending the datagram itself, so it causes no more bytes than it sends. All
// forwarding together takes a quarter of the uplink. Datagrams beyond that are dropped and counted,
// and their sender is told at which rate they would pass (WIRE 9.10). Peers that ask at the same
// time have equal shares, and may use what others leave.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "leeway/transport.h"
#include "seal/associations.h"
#include "seal/path_message.h"
#include "seal/roaming.h"

namespace leeway::seal {

// Bytes that relaying adds to a datagram on either hop: head and seal.
inline constexpr std::size_t kRelayOverheadBytes = kRelayHeadBytes + kOverheadBytes;

class Forwarding {
 public:
  static constexpr double kShare = 0.25;
  // Uplink rate, bits per second, that is assumed until set_uplink() is called.
  static constexpr double kUplinkUnknown = 1e9;

  struct Counters {
    std::uint64_t datagrams = 0;  // forwarded
    std::uint64_t bytes = 0;      // bytes forwarded, sealed for their hop
    std::uint64_t refused_share = 0;
    // The target is not a peer that this process reaches directly.
    std::uint64_t refused_target = 0;
  };

  // Adds a peer. `name`: the peer's name among all processes (keys::name_of()); 0 if it has none.
  void meet(Rank slot, std::uint64_t name);
  // Returns kNoRank if nobody has the name.
  Rank slot_of(std::uint64_t name) const;
  std::uint64_t name_of(Rank slot) const { return slot < names_.size() ? names_[slot] : 0; }

  // Bits per second that may leave this process; 0 if unknown.
  void set_uplink(double bits_per_second);
  // Call it after forward() for that peer. Returns the share to tell the peer now; nullopt if it
  // was told lately, or nothing that it asked for was ever refused.
  std::optional<ShareMessage> share_for(Instant now, Rank from);

  // Decides whether to forward an opened datagram whose head asks for it. If so, returns the
  // receiver and replaces the head by the receiver's. The caller then seals the datagram for the
  // receiver as a path message. Else counts the refusal and returns nullopt.
  std::optional<Rank> forward(Instant now, Rank from, const RelayHead& head, Ecn ecn,
                              const Roaming& roaming, MutableByteSpan opened);
  // Opens the inner datagram of a datagram that a relay forwarded to this process. `from` of the
  // result is kNoRank unless the inner datagram was sealed by the process that the head names.
  Associations::Opened open(Instant now, const RelayHead& head, Associations& seals,
                            MutableByteSpan opened) const;

  const Counters& counters() const { return counters_; }

 private:
  struct Named {
    std::uint64_t name = 0;
    Rank slot = kNoRank;
  };

  // Forwarding that one peer asked for.
  struct Asker {
    bool ever = false;
    Instant asked_at;
    Instant counted_since;
    std::uint64_t counted = 0;    // bytes that were forwarded since then
    double bytes_per_second = 0;  // forwarded in the time before that
    std::uint32_t refused = 0;    // datagrams
    std::uint32_t refused_told = 0;
    double told = 0;  // bytes per second that it was told; 0 if none yet
    Instant told_at;
  };

  void fill(Instant now);
  bool spend(Instant now, std::size_t size);
  void note(Instant now, Rank from, std::size_t bytes, bool taken);
  double share_of(Instant now, Rank from) const;

  std::vector<Named> by_name_;        // sorted
  std::vector<std::uint64_t> names_;  // by slot
  double bytes_per_second_ = kShare * kUplinkUnknown / 8;
  double tokens_ = 0;                               // bytes
  double reserved_ = 0;                             // bytes, for short datagrams
  Instant filled_at_ = Instant::infinite_future();  // never yet
  std::vector<Asker> askers_;                       // by slot
  Counters counters_;
};

}  // namespace leeway::seal
