#include "transport/udp/peer_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/limits.h"

namespace leeway::transport {

PeerTable::Key PeerTable::key_of(const sockaddr* address) {
  Key key;
  if (address->sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(*address);
    key.low = (std::uint64_t{0xFFFF} << 32) | v4.sin_addr.s_addr;
    key.port = v4.sin_port;
  } else if (address->sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(*address);
    std::memcpy(&key.high, &v6.sin6_addr, 8);
    std::memcpy(&key.low, reinterpret_cast<const std::byte*>(&v6.sin6_addr) + 8, 8);
    key.port = v6.sin6_port;
  }
  return key;
}

std::size_t PeerTable::home_of(const Key& key) const {
  std::uint64_t mixed =
      key.high ^ (key.low * 0x9E3779B97F4A7C15u) ^ (std::uint64_t{key.port} << 32);
  mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9u;
  return (mixed ^ (mixed >> 32)) & (slots_.size() - 1);
}

std::size_t PeerTable::probe(const Key& key) const {
  std::size_t at = home_of(key);
  while (slots_[at].rank != kNoRank && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
  return at;
}

Status PeerTable::assign(std::span<const UdpAddress> by_rank) {
  if (by_rank.empty() || by_rank.size() > static_cast<std::size_t>(limits::kPeersMax)) {
    return Status::error(StatusCode::kResourceExhausted, "%zu peers: 1 to %d are supported",
                         by_rank.size(), limits::kPeersMax);
  }
  PeerTable fresh;
  fresh.group_ = group_;
  fresh.addresses_.assign(by_rank.begin(), by_rank.end());
  fresh.slots_.resize(std::bit_ceil(2 * by_rank.size()));
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].protocol() != by_rank[0].protocol()) {
      return Status::error(StatusCode::kMismatch, "rank 0 and rank %zu differ in address family",
                           rank);
    }
    const Key key = key_of(by_rank[rank].data());
    Slot& slot = fresh.slots_[fresh.probe(key)];
    if (slot.rank != kNoRank) {
      return Status::error(StatusCode::kMismatch,
                           "ranks %u and %zu have the same data address %s port %u",
                           unsigned{slot.rank}, rank, by_rank[rank].address().to_string().c_str(),
                           unsigned{by_rank[rank].port()});
    }
    slot = {key, static_cast<Rank>(rank)};
    ++fresh.used_;
  }
  *this = std::move(fresh);
  return {};
}

Status PeerTable::meet(Rank peer, const UdpAddress& address) {
  if (peer >= limits::kPeersMax) {
    return Status::error(StatusCode::kResourceExhausted,
                         "a process has met %u others, which is the most that it can: destroy "
                         "communicators that are over",
                         unsigned{peer});
  }
  if (!addresses_.empty() && address.protocol() != addresses_[0].protocol()) {
    return Status::error(StatusCode::kMismatch,
                         "data address %s is not of the family of this process's own",
                         address.address().to_string().c_str());
  }
  if (peer == count()) addresses_.push_back(address);
  if (2 * (used_ + 1) > slots_.size()) grow();
  insert(peer, address);
  return {};
}

void PeerTable::insert(Rank peer, const UdpAddress& address) {
  const Key key = key_of(address.data());
  Slot& slot = slots_[probe(key)];
  used_ += slot.rank == kNoRank;
  slot = {key, peer};
}

// Clears the table and enters all addresses anew, so that the peer's old addresses do not stay in
// it. This takes long, but moves are rare.
void PeerTable::move(Rank peer, const UdpAddress& address) {
  addresses_[peer] = address;
  std::fill(slots_.begin(), slots_.end(), Slot{});
  used_ = 0;
  for (Rank rank = 0; rank < count(); ++rank) insert(rank, addresses_[rank]);
}

void PeerTable::grow() {
  std::vector<Slot> old(std::max<std::size_t>(8, 2 * slots_.size()));
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.rank != kNoRank) slots_[probe(slot.key)] = slot;
  }
}

Rank PeerTable::find(const sockaddr_storage& address) const {
  const auto* const raw = reinterpret_cast<const sockaddr*>(&address);
  return slots_.empty() ? kNoRank : slots_[probe(key_of(raw))].rank;
}

}  // namespace leeway::transport
