// What this process forwards for others (WIRE 9.8): sealed datagrams between two peers that have no
// path of their own.
//
// Sans-IO. Whoever asks was proven by the seal of the hop, and asks for as many bytes as he sends:
// a stranger gets nothing forwarded, and nobody gets more out than he puts in. All of it together
// takes a quarter of the uplink; what is beyond is dropped and counted, and its sender is told how
// much would have passed (WIRE 9.10). Of processes that ask at the same time each has an equal
// part, and what one does not use is the others'.
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

// What a datagram is longer while it is relayed: on either hop, head and seal.
inline constexpr std::size_t kRelayOverheadBytes = kRelayHeadBytes + kOverheadBytes;

class Forwarding {
 public:
  static constexpr double kShare = 0.25;
  // The uplink, as long as nobody says how fast it is.
  static constexpr double kUplinkUnknown = 1e9;

  struct Counters {
    std::uint64_t datagrams = 0;  // forwarded
    std::uint64_t bytes = 0;      // of these, sealed for their hop
    std::uint64_t refused_share = 0;
    std::uint64_t refused_target = 0;  // for nobody that this process reaches by itself
  };

  // All who know the peer know it by this name; 0: they do not.
  void meet(Rank slot, std::uint64_t name);
  // kNoRank: nobody's.
  Rank slot_of(std::uint64_t name) const;
  std::uint64_t name_of(Rank slot) const { return slot < names_.size() ? names_[slot] : 0; }

  // Bits a second that may leave this process; 0: nobody knows.
  void set_uplink(double bits_per_second);
  // After forward() for that peer: what the peer is to be told now. Nullopt if it was told lately,
  // or if all that it ever asked was forwarded.
  std::optional<ShareMessage> share_for(Instant now, Rank from);

  // An opened datagram with that head asks to be forwarded. Whom it is to be sealed for now, as a
  // path message; its head is then what the receiver is to read. Nothing: it is refused and
  // counted.
  std::optional<Rank> forward(Instant now, Rank from, const RelayHead& head, Ecn ecn,
                              const Roaming& roaming, MutableByteSpan opened);
  // One was forwarded to this process by `via`: opens what the peer had sealed. `from` is kNoRank
  // where it is not of the process that the head names.
  Associations::Opened open(Instant now, const RelayHead& head, Associations& seals,
                            MutableByteSpan opened) const;

  const Counters& counters() const { return counters_; }

 private:
  struct Named {
    std::uint64_t name = 0;
    Rank slot = kNoRank;
  };

  // What a peer asked to be forwarded.
  struct Asker {
    bool ever = false;
    Instant asked_at;
    Instant counted_since;
    std::uint64_t counted = 0;    // bytes that were forwarded since then
    double bytes_per_second = 0;  // forwarded in the time before that
    std::uint32_t refused = 0;    // datagrams
    std::uint32_t refused_told = 0;
    double told = 0;  // bytes a second; 0: nothing was told yet
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
  double reserved_ = 0;                             // bytes, for what is short
  Instant filled_at_ = Instant::infinite_future();  // never yet
  std::vector<Asker> askers_;                       // by slot
  Counters counters_;
};

}  // namespace leeway::seal
