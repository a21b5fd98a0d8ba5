#include "transport/shm/shm_transport.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"
#include "transport/slice_cursor.h"

namespace leeway::transport {
namespace {

// One receive() hands out at most this many datagrams. It has memory to copy as many, if all are
// short.
constexpr std::size_t kLentMax = 64;

// Longest sleep of wait(). It is short, because no peer can wake this process.
constexpr Duration kNap = std::chrono::microseconds(100);

}  // namespace

Result<std::unique_ptr<ShmTransport>> ShmTransport::open(ClockFunction clock,
                                                         std::size_t datagram_bytes_max) {
  std::unique_ptr<ShmTransport> transport(new ShmTransport(std::move(clock), datagram_bytes_max));
  if (Status status = transport->waiter_.open(std::span<const int>()); !status.ok()) return status;
  return transport;
}

ShmTransport::ShmTransport(ClockFunction clock, std::size_t datagram_bytes_max)
    : clock_(std::move(clock)), copies_(kLentMax * RingReader::kCopiedBytesMax) {
  limits_.datagram_bytes_max = datagram_bytes_max;
  limits_.train_bytes_max = kTrainBytesMax;
  limits_.train_datagrams_max = kTrainDatagramsMax;
  limits_.train_slices_max = kTrainSlicesMax;
  limits_.receive_buffer_bytes = kRingBytesMin;
  limits_.intact = true;  // memory of one machine needs no checksums
}

void ShmTransport::attach(Rank peer, Segment segment, bool creator) {
  LEEWAY_ASSERT(find(peer) == nullptr);
  if (peer >= by_rank_.size()) by_rank_.resize(peer + std::size_t{1});
  by_rank_[peer] =
      std::make_unique<Peer>(peer, std::move(segment), creator, limits_.datagram_bytes_max);
  peers_.push_back(by_rank_[peer].get());
  lent_.reserve(peers_.size());
}

bool ShmTransport::put_nonce(Rank to, RecordKind kind, std::uint64_t nonce) {
  Peer* const peer = find(to);
  if (peer == nullptr || !peer->writer.put(kind, nonce)) return false;
  show(*peer);
  return true;
}

std::optional<std::uint64_t> ShmTransport::take_challenge(Rank from) {
  Peer* const peer = find(from);
  return peer == nullptr ? std::nullopt : peer->reader.take_challenge();
}

std::optional<std::uint64_t> ShmTransport::take_echo(Rank from) {
  Peer* const peer = find(from);
  return peer == nullptr ? std::nullopt : peer->reader.take_echo();
}

std::size_t ShmTransport::send(std::span<const Train> trains) {
  std::size_t taken = 0;
  for (; taken < trains.size(); ++taken) {
    const Train& train = trains[taken];
    Peer* const peer = find(train.to);
    const Outcome outcome = peer == nullptr ? Outcome::lost : put(*peer, train);
    if (outcome == Outcome::full) {
      ++shm_counters_.full;
      break;
    }
    if (outcome == Outcome::lost) {
      ++counters_.send_errors;
      continue;
    }
    counters_.datagrams_sent += datagrams_of(train);
    counters_.bytes_sent += train.total_bytes;
    show(*peer);  // at once: the reader reads it while the next one is copied
  }
  ++counters_.send_calls;
  return taken;
}

ShmTransport::Outcome ShmTransport::put(Peer& peer, const Train& train) {
  if (!peer.broken() && peer.writer.put(train)) {
    peer.blocked_bytes = 0;
    peer.stalled_since = Instant::infinite_future();
    return Outcome::taken;
  }
  if (peer.broken()) {
    note_broken(peer);
    return Outcome::lost;
  }
  if (is_stalled(peer)) {
    ++shm_counters_.stalled;
    peer.blocked_bytes = 0;
    return Outcome::lost;
  }
  peer.blocked_bytes = train.total_bytes;
  return Outcome::full;
}

bool ShmTransport::is_stalled(Peer& peer) {
  const Instant now = clock_();
  if (peer.stalled_since == Instant::infinite_future() ||
      peer.stalled_at != peer.writer.released()) {
    peer.stalled_at = peer.writer.released();
    peer.stalled_since = now;
  }
  return now - peer.stalled_since >= kStall;
}

// Shows the reader the records that were put. If the reader sleeps, has a bell rung for it, once
// for each of its sleeps.
void ShmTransport::show(Peer& peer) {
  peer.writer.publish();
  const std::uint32_t sleep = peer.writer.reader_sleep();
  if (sleep == 0 || sleep == peer.rung_sleep) return;
  peer.rung_sleep = sleep;
  peer.ring_every = kBellEvery;
  peer.ring_again = clock_() + peer.ring_every;
  ring_again_ = std::min(ring_again_, peer.ring_again);
  call(peer);
}

// Has another bell rung for peers that still sleep and have not read, because the first bell may be
// lost.
void ShmTransport::ring_again(Instant now) {
  ring_again_ = Instant::infinite_future();
  for (Peer* const peer : peers_) {
    if (now >= peer->ring_again) {
      const bool heeded = peer->writer.reader_sleep() != peer->rung_sleep || !peer->writer.unread();
      peer->ring_every = std::min(2 * peer->ring_every, kBellEveryMax);
      peer->ring_again = heeded ? Instant::infinite_future() : now + peer->ring_every;
      if (!heeded) call(*peer);
    }
    ring_again_ = std::min(ring_again_, peer->ring_again);
  }
}

void ShmTransport::call(Peer& peer) {
  peer.bell = bells_ = true;
  ++shm_counters_.bells;
}

std::optional<Rank> ShmTransport::poll_bell() {
  if (!bells_) return std::nullopt;
  for (Peer* const peer : peers_) {
    if (std::exchange(peer->bell, false)) return peer->rank;
  }
  bells_ = false;
  return std::nullopt;
}

void ShmTransport::give_back() {
  for (Peer* const peer : lent_) {
    if (!peer->reader.release()) continue;
    const std::uint32_t wait = peer->reader.writer_wait();
    if (wait == 0 || wait == peer->rung_wait) continue;
    peer->rung_wait = wait;
    call(*peer);
  }
  lent_.clear();
}

// Each call begins with another peer, so that a peer that fills calls does not starve the others.
std::size_t ShmTransport::receive(std::span<Received> out) {
  give_back();
  if (ring_again_ != Instant::infinite_future()) [[unlikely]] {
    const Instant now = clock_();
    if (now >= ring_again_) ring_again(now);
  }
  out = out.first(std::min(out.size(), kLentMax));
  std::size_t filled = 0;
  if (!peers_.empty()) ++first_;
  for (std::size_t i = 0; i < peers_.size() && filled < out.size(); ++i) {
    Peer& peer = *peers_[(first_ + i) % peers_.size()];
    if (!peer.reader.unread()) continue;
    lent_.push_back(&peer);
    filled += peer.reader.read(peer.rank, out.subspan(filled),
                               copies_.data() + filled * RingReader::kCopiedBytesMax);
    if (peer.reader.broken()) [[unlikely]]
      note_broken(peer);
    if (peer.reader.has_nonce()) [[unlikely]]
      nonces_seen_ = true;
  }
  ++counters_.receive_calls;
  counters_.datagrams_received += filled;
  for (const Received& datagram : out.first(filled))
    counters_.bytes_received += datagram.bytes.size();
  return filled;
}

void ShmTransport::note_broken(Peer& peer) {
  if (!std::exchange(peer.counted_broken, true)) ++shm_counters_.broken;
}

bool ShmTransport::begin_sleep() {
  give_back();
  const Instant now = clock_();
  if (now >= ring_again_) ring_again(now);
  bool may = true;
  for (Peer* const peer : peers_) {
    may = peer->reader.begin_sleep() && may;
    may = may_wait_for_room(*peer, now) && may;
  }
  if (!may) end_sleep();
  return may;
}

// Returns false if send() should be tried again with the train that it had no room for: there is
// room now, or the reader stalled and the train will be dropped. Returns true if no train waits,
// and so also after it has returned false.
bool ShmTransport::may_wait_for_room(Peer& peer, Instant now) {
  if (peer.blocked_bytes == 0) return true;
  if (now - peer.stalled_since < kStall && peer.writer.begin_waiting(peer.blocked_bytes))
    return true;
  peer.blocked_bytes = 0;
  return false;
}

void ShmTransport::end_sleep() {
  for (Peer* const peer : peers_) {
    peer->reader.end_sleep();
    peer->writer.end_waiting();
  }
}

Instant ShmTransport::next_wake() const {
  Instant next = ring_again_;
  for (const Peer* const peer : peers_) {
    if (peer->blocked_bytes > 0) next = std::min(next, peer->stalled_since + kStall);
  }
  return next;
}

void ShmTransport::wait(Duration timeout) {
  if (begin_sleep()) {
    waiter_.wait(std::min(timeout, kNap), false);
    end_sleep();
  }
}

}  // namespace leeway::transport
