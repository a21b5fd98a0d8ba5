#include "communicator/memory_sharing.h"

#include <algorithm>
#include <bit>

#include "base/hex_text.h"
#include "base/limits.h"
#include "driving/driver.h"
#include "keys/derive.h"
#include "transport/shm/host.h"

namespace leeway::internal {
namespace {

// Bytes of all rings that one rank reads, together. At this size they stay in a core's second-level
// cache between the writer's copy and the reader's. With 1 MiB for each single ring, an all-reduce
// of 16 MiB between 4 ranks took 1.2 times as long. At 22 ranks, rings have their least size
// (kRingBytesMin, 128 KiB). Two rings for each of the 231 pairs then nearly fill the 64 MB of
// shared memory that a container has.
constexpr std::size_t kInboundBytes = std::size_t{1} << 20;

std::size_t ring_bytes_for(std::size_t peers_of_host) {
  const std::size_t rings = std::max<std::size_t>(peers_of_host, 1);
  return std::max(std::bit_floor(kInboundBytes / rings), transport::kRingBytesMin);
}

bool on_one_host(const rendezvous::MemoryPlace& a, const rendezvous::MemoryPlace& b) {
  return a.shares() && b.shares() && a.boot == b.boot && a.user == b.user;
}

// WIRE 11.2: the process with the lower token creates the segment, which is named by both tokens.
transport::MixedTransport::Pair pair_of(const rendezvous::MemoryPlace& own,
                                        const rendezvous::MemoryPlace& peer,
                                        std::size_t ring_bytes) {
  const bool creator = own.token < peer.token;
  const auto& lower = creator ? own.token : peer.token;
  const auto& higher = creator ? peer.token : own.token;
  return {"leeway-" + hex_text(lower) + '-' + hex_text(higher), creator, ring_bytes};
}

}  // namespace

bool may_share_memory(const Options& options) {
  switch (options.transport) {
    case TransportKind::shm:
    case TransportKind::mixed:
      return true;
    case TransportKind::automatic:
      return !options.faults.any();
    default:
      return false;
  }
}

Status check_memory() {
  const auto host = transport::this_host();
  return host.ok() ? transport::check_shared_memory(transport::kSharedMemoryFolder) : host.status();
}

rendezvous::MemoryPlace new_memory_place() {
  rendezvous::MemoryPlace place;
  const auto host = transport::this_host();
  if (!check_memory().ok()) return place;
  place.boot = host->boot;
  place.user = host->user;
  keys::fill_randomly(place.token);
  return place;
}

std::unique_ptr<DatagramTransport> with_memory(std::unique_ptr<DatagramTransport> wide,
                                               transport::MixedTransport*& mixed) {
  mixed = nullptr;
  auto shm = transport::ShmTransport::open(driving::steady_now, limits::kDatagramBytesMax);
  if (!shm.ok()) return wide;
  auto both = std::make_unique<transport::MixedTransport>(std::move(wide), std::move(*shm),
                                                          driving::steady_now);
  mixed = both.get();
  return both;
}

bool all_may_share(const rendezvous::Group& group) {
  return !group.memories.empty() &&
         std::all_of(group.memories.begin(), group.memories.end(), [&](const auto& memory) {
           return on_one_host(group.memories.front(), memory);
         });
}

void meet_by_memory(const rendezvous::Group& group, Rank self, std::span<const Rank> slots,
                    transport::MixedTransport& mixed) {
  const bool any = !group.memories.empty();
  const rendezvous::MemoryPlace own = any ? group.memories[self] : rendezvous::MemoryPlace();
  const auto is_near = [&](Rank rank) { return any && on_one_host(own, group.memories[rank]); };
  std::size_t near = 0;
  for (Rank rank = 0; rank < slots.size(); ++rank) near += rank != self && is_near(rank);
  for (Rank rank = 0; rank < slots.size(); ++rank) {
    if (rank == self || mixed.knows(slots[rank])) continue;
    if (!is_near(rank)) {
      mixed.meet(slots[rank]);
      continue;
    }
    std::uint64_t nonce = 0;
    while (nonce == 0) keys::fill_randomly(std::as_writable_bytes(std::span(&nonce, 1)));
    mixed.meet(slots[rank], pair_of(own, group.memories[rank], ring_bytes_for(near)), nonce);
  }
}

}  // namespace leeway::internal
