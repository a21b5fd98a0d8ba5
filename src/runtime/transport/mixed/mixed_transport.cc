#include "transport/mixed/mixed_transport.h"

#include <algorithm>

#include "base/contracts.h"
#include "transport/shm/memory_file.h"

namespace leeway::transport {
namespace {

// If all peers are near, the wide transport brings only bells, unless it has multicast. A process
// that calls receive() is awake and needs no bell to wake it. So receive() polls the wide transport
// only at every kWideEvery-th call, because a poll is a system call and costs as much as a short
// message through memory.
constexpr std::uint32_t kWideEvery = 64;

}  // namespace

MixedTransport::MixedTransport(std::unique_ptr<DatagramTransport> wide,
                               std::unique_ptr<ShmTransport> shm, ClockFunction clock,
                               std::string folder)
    : wide_(std::move(wide)),
      shm_(std::move(shm)),
      clock_(std::move(clock)),
      folder_(std::move(folder)) {}

MixedTransport::~MixedTransport() {
  for (const auto& peer : peers_) {
    if (peer != nullptr) remove_name(*peer);
  }
}

void MixedTransport::meet(Rank rank) {
  LEEWAY_ASSERT(!knows(rank));
  if (rank >= peers_.size()) peers_.resize(rank + std::size_t{1});
  peers_[rank] = std::make_unique<Peer>(Pair(), RingProof(Instant{0}, 0));
  peers_[rank]->here = false;
  peers_[rank]->obstacle = "it is on another host, or of another user";
  peers_[rank]->proof.refuse();
  near_.resize(peers_.size());
  ++met_;
}

void MixedTransport::meet(Rank rank, const Pair& pair, std::uint64_t nonce) {
  LEEWAY_ASSERT(!knows(rank) && nonce != 0);
  if (rank >= peers_.size()) peers_.resize(rank + std::size_t{1});
  peers_[rank] = std::make_unique<Peer>(pair, RingProof(clock_(), nonce));
  near_.resize(peers_.size());
  unrung_.reserve(peers_.size());
  ++met_;
  ++open_;
  proof_at_ = Instant{0};
  if (pair.creator) (void)attach(rank);
}

// Maps the pair's rings, if they are not mapped yet. Returns true if they are mapped.
bool MixedTransport::attach(Rank rank) {
  Peer& peer = *peers_[rank];
  if (peer.attached) return true;
  auto segment = peer.pair.creator ? Segment::create(folder_, peer.pair.name, peer.pair.ring_bytes)
                                   : Segment::open(folder_, peer.pair.name);
  if (!segment.ok()) {
    peer.obstacle = segment.status().c_str();
    if (segment.status().code() != StatusCode::kUnavailable) refuse(rank, nullptr);
    return false;
  }
  peer.named = peer.pair.creator;
  // Both processes now have the segment, so its name is no longer needed
  if (!peer.pair.creator) MemoryFile::remove_name(folder_, peer.pair.name);
  shm_->attach(rank, std::move(*segment), peer.pair.creator);
  (void)shm_->put_nonce(rank, RecordKind::challenge, peer.proof.nonce());
  peer.attached = true;
  peer.obstacle.clear();
  return true;
}

void MixedTransport::refuse(Rank rank, const char* why) {
  Peer& peer = *peers_[rank];
  if (why != nullptr) peer.obstacle = why;
  if (peer.proof.standing() != RingProof::Standing::open) return;
  peer.proof.refuse();
  conclude(rank);
}

// Call it when the peer's proof has just ended, successfully or not.
void MixedTransport::conclude(Rank rank) {
  Peer& peer = *peers_[rank];
  --open_;
  remove_name(peer);
  if (peer.proof.standing() != RingProof::Standing::proven) return;
  near_[rank] = 1;
  ++proven_;
  mutual_ += peer.proof.gave();
}

void MixedTransport::remove_name(Peer& peer) {
  if (std::exchange(peer.named, false)) MemoryFile::remove_name(folder_, peer.pair.name);
}

std::size_t MixedTransport::send(std::span<const Train> trains) {
  std::size_t taken = 0;
  while (taken < trains.size()) {
    const bool near = is_near(trains[taken].to);
    std::size_t end = taken + 1;
    while (end < trains.size() && is_near(trains[end].to) == near) ++end;
    const auto some = trains.subspan(taken, end - taken);
    const std::size_t sent = near ? shm_->send(some) : wide_->send(some);
    taken += sent;
    if (sent < some.size()) break;
  }
  ring_bells();
  return taken;
}

// One call may take datagrams from both transports, because what a transport lends stays valid
// until its own next receive(). The order alternates, so that neither transport starves the other.
std::size_t MixedTransport::receive(std::span<Received> out) {
  std::size_t filled = 0;
  const bool wide = is_wide_due();
  const bool wide_first = wide && (wide_first_ = !wide_first_);
  if (wide_first) filled += receive_wide(out);
  filled += shm_->receive(out.subspan(filled));
  if (wide && !wide_first) filled += receive_wide(out.subspan(filled));
  if (shm_->nonces_seen()) [[unlikely]] {
    for (Rank rank = 0; rank < peers_.size(); ++rank) take_nonces(rank);
  }
  if (open_ > 0) [[unlikely]]
    serve(clock_());
  ring_bells();
  return filled;
}

bool MixedTransport::is_wide_due() {
  const bool all_near = met_ > 0 && mutual_ == met_;
  if (all_near && !wide_->limits().multicast && ++wide_skipped_ < kWideEvery) return false;
  wide_skipped_ = 0;
  return true;
}

// Receives from the wide transport. Handles bells here and does not return them.
std::size_t MixedTransport::receive_wide(std::span<Received> out) {
  const std::size_t count = wide_->receive(out);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (out[i].bytes.size() == Bell::kBytes) [[unlikely]] {
      if (const auto bell = Bell::decode(out[i].bytes)) {
        on_bell(out[i].from, *bell);
        continue;
      }
    }
    out[kept++] = out[i];
  }
  if (kept > 0) wide_skipped_ = kWideEvery;  // soon again: a peer still sends by the wide way
  return kept;
}

void MixedTransport::on_bell(Rank from, const Bell& bell) {
  ++bells_heard_;
  if (!knows(from) || !peers_[from]->here) return;
  Peer& peer = *peers_[from];
  if (bell.kind == Bell::Kind::refusal)
    return refuse(from, "the peer cannot share memory with this process");
  if (!peer.attached && peer.proof.standing() == RingProof::Standing::refused)
    return ring(from, {Bell::Kind::refusal, 0});
  if (bell.nonce == 0) return;  // the peer is looking for the segment
  peer.proof.on_bell(bell.nonce);
  if (attach(from)) return echo(from);
  // The peer's bell shows that it has mapped the segment, but this process cannot map it
  refuse(from, nullptr);
  ring(from, {Bell::Kind::refusal, 0});
}

void MixedTransport::take_nonces(Rank from) {
  if (!knows(from)) return;
  Peer& peer = *peers_[from];
  if (const auto challenge = shm_->take_challenge(from)) peer.proof.on_challenge(*challenge);
  echo(from);
  const auto nonce = shm_->take_echo(from);
  if (!nonce || peer.proof.standing() != RingProof::Standing::open) return;
  peer.proof.on_echo(*nonce);
  if (peer.proof.standing() == RingProof::Standing::proven) conclude(from);
}

void MixedTransport::echo(Rank to) {
  Peer& peer = *peers_[to];
  const auto nonce = peer.proof.echo_due();
  if (!nonce || !shm_->put_nonce(to, RecordKind::echo, *nonce)) return;
  mutual_ += near_[to] != 0 && !peer.proof.gave();
  peer.proof.on_echoed();
  ring(to, {Bell::Kind::ring, peer.proof.nonce()});
}

void MixedTransport::serve(Instant now) {
  if (now < proof_at_) return;
  proof_at_ = Instant::infinite_future();
  for (Rank rank = 0; rank < peers_.size(); ++rank) {
    if (!knows(rank) || peers_[rank]->proof.standing() != RingProof::Standing::open) continue;
    advance(now, rank);
    proof_at_ = std::min(proof_at_, peers_[rank]->proof.next_wake());
  }
}

void MixedTransport::advance(Instant now, Rank rank) {
  Peer& peer = *peers_[rank];
  if (!peer.proof.poll_bell(now)) {
    if (peer.proof.standing() == RingProof::Standing::refused) {
      if (peer.obstacle.empty()) peer.obstacle = "the peer does not answer through memory";
      conclude(rank);
    }
    return;
  }
  const bool attached = attach(rank);
  if (peer.proof.standing() != RingProof::Standing::open) return;
  ring(rank, {Bell::Kind::ring, attached ? peer.proof.nonce() : 0});
}

void MixedTransport::ring(Rank to, const Bell& bell) {
  const auto bytes = bell.encode();
  const Slice slice{bytes.data(), bytes.size()};
  const Train train{to, bytes.size(), bytes.size(), {&slice, 1}};
  if (wide_->send({&train, 1}) == 1) return;
  const auto unrung = std::find_if(unrung_.begin(), unrung_.end(),
                                   [to](const auto& one) { return one.first == to; });
  if (unrung == unrung_.end()) {
    unrung_.emplace_back(to, bell);
  } else {
    unrung->second = bell;
  }
}

void MixedTransport::ring_bells() {
  while (!unrung_.empty()) [[unlikely]] {
      const auto [to, bell] = unrung_.back();
      unrung_.pop_back();
      const std::size_t before = unrung_.size();
      ring(to, bell);
      if (unrung_.size() > before) break;  // still no room
    }
  while (const auto to = shm_->poll_bell())
    ring(*to, {Bell::Kind::ring, peers_[*to]->proof.nonce()});
}

void MixedTransport::wait(Duration timeout) {
  const Instant now = clock_();
  if (open_ > 0) serve(now);
  const bool sleeps = shm_->begin_sleep();
  ring_bells();
  if (!sleeps) return;
  Instant until = shm_->next_wake();
  if (open_ > 0) until = std::min(until, proof_at_);
  wide_->wait(std::clamp<Duration>(until - now, Duration(0), timeout));
  shm_->end_sleep();
  wide_skipped_ = kWideEvery;  // look for the datagram that woke us
}

TransportCounters MixedTransport::counters() const {
  TransportCounters sum = wide_->counters();
  const TransportCounters near = shm_->counters();
  sum.datagrams_sent += near.datagrams_sent;
  sum.datagrams_received += near.datagrams_received;
  sum.bytes_sent += near.bytes_sent;
  sum.bytes_received += near.bytes_received;
  sum.send_errors += near.send_errors;
  return sum;
}

std::vector<std::pair<std::string, std::uint64_t>> MixedTransport::named_counters() const {
  const TransportCounters near = shm_->counters();
  const ShmCounters& counted = shm_->shm_counters();
  return {{"shm_peers", proven_},
          {"shm_datagrams_sent", near.datagrams_sent},
          {"shm_datagrams_received", near.datagrams_received},
          {"shm_bytes_sent", near.bytes_sent},
          {"shm_full", counted.full},
          {"shm_stalled", counted.stalled},
          {"shm_broken", counted.broken},
          {"shm_bells", counted.bells},
          {"shm_bells_heard", bells_heard_}};
}

}  // namespace leeway::transport
