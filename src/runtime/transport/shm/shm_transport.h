// Datagrams through memory that this process shares with others of its host: two rings a peer.
//
// send() copies a train into the receiver's ring, and receive() lends it from there: one copy. If a
// ring is full, send() does not take the train, so nothing is lost while the reader lives. Trains
// to a reader that does not move for kStall are lost, as in a network, so that a stopped or killed
// process does not hold up other peers.
//
// This transport cannot wake a process, so wait() only naps. A transport that has another way to
// the peers (transport/mixed) calls begin_sleep(), sleeps itself, and rings the peers that
// poll_bell() names.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "leeway/transport.h"
#include "transport/shm/segment.h"
#include "transport/waiter.h"

namespace leeway::transport {

struct ShmCounters {
  std::uint64_t broken = 0;   // pairs of rings in which the peer broke a rule
  std::uint64_t stalled = 0;  // trains lost because their reader did not move
  std::uint64_t bells = 0;    // bells that had to be rung
  std::uint64_t full = 0;     // number of times that send() fell short
};

class ShmTransport final : public DatagramTransport {
 public:
  using ClockFunction = std::function<Instant()>;

  // A reader that leaves its ring full for kStall counts as dead. The time is longer than a busy
  // machine keeps a process from running, and shorter than a peer time-out.
  static constexpr Duration kStall = std::chrono::milliseconds(100);
  // A bell that the peer did not answer for kBellEvery is rung again, since UDP may lose it. The
  // interval doubles each time, up to kBellEveryMax.
  static constexpr Duration kBellEvery = std::chrono::milliseconds(1);
  static constexpr Duration kBellEveryMax = std::chrono::milliseconds(100);

  // Returns kResourceExhausted if the process has too many files open.
  static Result<std::unique_ptr<ShmTransport>> open(ClockFunction clock,
                                                    std::size_t datagram_bytes_max);

  // Reaches the peer through the segment from now on. `creator` is true if this process created the
  // segment. Call it once for each peer.
  void attach(Rank peer, Segment segment, bool creator);
  // Returns true if the peer is attached and its rings are not broken, so that it can be sent to.
  bool reaches(Rank peer) const {
    return peer < by_rank_.size() && by_rank_[peer] != nullptr && !by_rank_[peer]->broken();
  }

  // Nonces for the proof that two processes share their rings (transport/mixed/ring_proof.h).
  // put_nonce() returns false if the ring is full, or if there is no ring.
  bool put_nonce(Rank to, RecordKind kind, std::uint64_t nonce);
  // Returns true if receive() found nonces since the last call.
  bool nonces_seen() { return std::exchange(nonces_seen_, false); }
  std::optional<std::uint64_t> take_challenge(Rank from);
  std::optional<std::uint64_t> take_echo(Rank from);

  // Returns a peer to which a bell must be sent, or nullopt. Such a peer sleeps although records
  // wait for it, or waits for room while this process has given some back.
  std::optional<Rank> poll_bell();
  // Returns false if this process must not sleep, because something has come or send() has room
  // again. Otherwise end_sleep() must follow, at next_wake() at the latest.
  bool begin_sleep();
  void end_sleep();
  Instant next_wake() const;

  std::string_view name() const override { return "shm"; }
  const TransportLimits& limits() const override { return limits_; }
  std::size_t send(std::span<const Train> trains) override;
  std::size_t receive(std::span<Received> out) override;
  void wait(Duration timeout) override;
  void wake() override { waiter_.wake(); }
  TransportCounters counters() const override { return counters_; }
  const ShmCounters& shm_counters() const { return shm_counters_; }

 private:
  struct Peer {
    Peer(Rank rank_in, Segment segment_in, bool creator, std::size_t datagram_bytes_max)
        : rank(rank_in),
          segment(std::move(segment_in)),
          writer(segment.ring(creator ? 0 : 1)),
          reader(segment.ring(creator ? 1 : 0), datagram_bytes_max) {}
    bool broken() const { return writer.broken() || reader.broken(); }

    const Rank rank;
    const Segment segment;
    RingWriter writer;
    RingReader reader;
    bool counted_broken = false;
    // Length of the train that send() had no room for, or 0 if there is none
    std::size_t blocked_bytes = 0;
    // The position at which the reader stands while its ring is full, and since when
    std::uint64_t stalled_at = 0;
    Instant stalled_since = Instant::infinite_future();
    // Numbers of the peer's latest sleep and latest wait for room for which a bell was rung, and
    // when to ring again
    std::uint32_t rung_sleep = 0;
    std::uint32_t rung_wait = 0;
    Instant ring_again = Instant::infinite_future();
    Duration ring_every = kBellEvery;
    bool bell = false;  // the peer must be rung
  };

  ShmTransport(ClockFunction clock, std::size_t datagram_bytes_max);

  Peer* find(Rank peer) const { return peer < by_rank_.size() ? by_rank_[peer].get() : nullptr; }
  enum class Outcome { taken, full, lost };
  Outcome put(Peer& peer, const Train& train);
  bool is_stalled(Peer& peer);
  bool may_wait_for_room(Peer& peer, Instant now);
  void show(Peer& peer);
  void call(Peer& peer);
  void ring_again(Instant now);
  void give_back();
  void note_broken(Peer& peer);

  const ClockFunction clock_;
  TransportLimits limits_;
  std::vector<std::unique_ptr<Peer>> by_rank_;
  std::vector<Peer*> peers_;  // peers that are attached
  std::size_t first_ = 0;     // index in peers_ where the next receive() begins
  std::vector<std::byte> copies_;
  std::vector<Peer*> lent_;  // peers whose memory the last receive() lent
  bool bells_ = false;       // some peer's bell is set
  bool nonces_seen_ = false;
  // Earliest time at which a peer is to be rung again
  Instant ring_again_ = Instant::infinite_future();
  TransportCounters counters_;
  ShmCounters shm_counters_;
  Waiter waiter_;
};

}  // namespace leeway::transport
