// One transport with two ways to each peer: shared memory, if the two processes have proved that
// they share it, else a wide transport (UDP, sealed where there is a secret).
//
// All trains to a peer go by one way at a time. That way changes at most twice: from wide to memory
// when the pair has proved its rings (ring_proof.h), and back when the peer breaks a ring. No
// datagram waits for a proof: until the proof, datagrams go by the wide way.
//
// Every process sleeps in the wide transport. A process that puts a record into a sleeper's ring
// sends a bell: one short datagram, which wakes the sleeper at its socket. The wide transport must
// copy in send() (borrowed() is always 0).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "leeway/transport.h"
#include "transport/mixed/bell.h"
#include "transport/mixed/ring_proof.h"
#include "transport/shm/shm_transport.h"

namespace leeway::transport {

class MixedTransport final : public DatagramTransport {
 public:
  using ClockFunction = std::function<Instant()>;

  // The segment of two processes. Both derive its name from tokens that they have exchanged.
  struct Pair {
    std::string name;
    bool creator = false;        // this process makes the segment
    std::size_t ring_bytes = 0;  // length of a ring, for the creator
  };

  MixedTransport(std::unique_ptr<DatagramTransport> wide, std::unique_ptr<ShmTransport> shm,
                 ClockFunction clock, std::string folder = kSharedMemoryFolder);
  ~MixedTransport() override;

  // Adds a peer on another host, which has only the wide way. Call meet() once for each peer, and
  // between other calls.
  void meet(Rank rank);
  // Adds a peer that may be on this host. Begins the proof that the pair shares memory, which goes
  // on in receive() and wait().
  void meet(Rank rank, const Pair& pair, std::uint64_t nonce);
  bool knows(Rank peer) const { return peer < peers_.size() && peers_[peer] != nullptr; }

  // Returns true if no proof is going on.
  bool settled() const { return open_ == 0; }
  // Returns true if trains to the peer go through memory now.
  bool is_near(Rank peer) const {
    return peer < near_.size() && near_[peer] != 0 && shm_->reaches(peer);
  }
  // Returns true if this process and the peer said that they run on one host as one user.
  bool may_be_near(Rank peer) const { return knows(peer) && peers_[peer]->here; }
  // Returns a text for people: why trains to the peer do not go through memory.
  const std::string& obstacle(Rank peer) const { return peers_[peer]->obstacle; }

  std::string_view name() const override { return "mixed"; }
  const TransportLimits& limits() const override { return wide_->limits(); }
  const TransportLimits& limits_to(Rank peer) const override {
    return is_near(peer) ? shm_->limits() : wide_->limits_to(peer);
  }
  Status register_memory(ByteSpan memory) override { return wide_->register_memory(memory); }
  void forget_memory(ByteSpan memory) override { wide_->forget_memory(memory); }
  std::size_t send(std::span<const Train> trains) override;
  std::size_t receive(std::span<Received> out) override;
  void wait(Duration timeout) override;
  void wake() override { wide_->wake(); }
  TransportCounters counters() const override;
  const Status& status() const override { return wide_->status(); }

  // Rows for Communicator::counters(): "shm_datagrams_sent", ...
  std::vector<std::pair<std::string, std::uint64_t>> named_counters() const;

 private:
  struct Peer {
    Peer(Pair pair_in, RingProof proof_in) : pair(std::move(pair_in)), proof(proof_in) {}
    const Pair pair;
    RingProof proof;
    bool here = true;       // the peer may be on this host
    bool attached = false;  // its rings are mapped
    bool named = false;     // the segment has a name that this process made
    std::string obstacle;
  };

  std::size_t receive_wide(std::span<Received> out);
  bool is_wide_due();
  void on_bell(Rank from, const Bell& bell);
  void take_nonces(Rank from);
  void echo(Rank to);
  void serve(Instant now);
  void advance(Instant now, Rank rank);
  bool attach(Rank rank);
  void refuse(Rank rank, const char* why);
  void conclude(Rank rank);
  void remove_name(Peer& peer);
  void ring(Rank to, const Bell& bell);
  void ring_bells();

  const std::unique_ptr<DatagramTransport> wide_;
  const std::unique_ptr<ShmTransport> shm_;
  const ClockFunction clock_;
  const std::string folder_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank
  std::vector<std::uint8_t> near_;            // by rank: proven
  std::size_t met_ = 0;
  std::size_t proven_ = 0;
  std::size_t mutual_ = 0;  // number of peers with whom both sides have proved the rings
  std::size_t open_ = 0;    // proofs that are going on
  Instant proof_at_ = Instant::infinite_future();
  // Bells that the wide transport had no room for, at most one for each peer
  std::vector<std::pair<Rank, Bell>> unrung_;
  bool wide_first_ = false;  // the last receive() took from the wide transport first
  std::uint32_t wide_skipped_ = 0;
  std::uint64_t bells_heard_ = 0;
};

}  // namespace leeway::transport
