#include "collective/replica_ledger.h"

#include <algorithm>

#include "base/contracts.h"
#include "base/duration_text.h"
#include "codec/codec.h"
#include "schedule/packet_grid.h"
#include "wire/packet.h"

namespace leeway::collective {

std::uint32_t parameter_packet_elements(const CodecOptions& codec, std::size_t datagram_bytes) {
  LEEWAY_ASSERT(datagram_bytes > wire::kDataHeaderBytes);
  const codec::Format format = codec::format_of(codec, DataType::f32);
  return static_cast<std::uint32_t>(format.elements_for(datagram_bytes - wire::kDataHeaderBytes));
}

ReplicaLedger::ReplicaLedger(const Options& options)
    : options_(options), shards_(schedule::ShardMap::even(options.elements, options.size)) {
  const auto size = static_cast<std::size_t>(options.size);
  ledger_.required.resize(size);
  ledger_.arrived.resize(size);
  ages_.resize(size);
  for (Rank owner = 0; owner < options.size; ++owner) {
    if (owner == options.self) continue;
    const schedule::PacketGrid grid(shards_[owner].count, options.packet_elements, sizeof(float));
    ledger_.required[owner].resize(grid.packets());
    ledger_.arrived[owner].resize(grid.packets());
    ages_[owner].assign(grid.packets(), 0);
  }
}

BroadcastLedger* ReplicaLedger::begin_broadcast() {
  for (Rank owner = 0; owner < options_.size; ++owner) {
    ledger_.required[owner].clear();
    ledger_.arrived[owner].clear();
    if (options_.age_max == 0) continue;
    for (std::size_t block = 0; block < ages_[owner].size(); ++block) {
      if (ages_[owner][block] >= options_.age_max) ledger_.required[owner].set(block);
    }
  }
  return &ledger_;
}

Status ReplicaLedger::finish_broadcast(Duration deadline, bool peer_left) {
  Status first_overdue;
  for (Rank owner = 0; owner < options_.size; ++owner) {
    for (std::size_t block = 0; block < ages_[owner].size(); ++block) {
      const std::uint32_t age = count_block(owner, block);
      if (options_.age_max == 0 || age <= options_.age_max || !first_overdue.ok()) continue;
      first_overdue = Status::error(
          peer_left ? StatusCode::kPeerLost : StatusCode::kDeadlineExceeded,
          "rank %u: broadcast_parameters: block %zu of rank %u is %u versions old and could not "
          "be refreshed (deadline %s)%s",
          options_.self, block, owner, age, in_milliseconds(deadline).data(),
          peer_left ? ": a rank has left or is dead" : "");
    }
  }
  return first_overdue;
}

// Updates the age of a block after a broadcast, and returns the age.
std::uint32_t ReplicaLedger::count_block(Rank owner, std::size_t block) {
  std::uint32_t& age = ages_[owner][block];
  if (ledger_.arrived[owner].test(block)) {
    refreshed_ += ledger_.required[owner].test(block);
    age = 0;
  } else {
    ++age;
  }
  age_max_seen_ = std::max(age_max_seen_, age);
  ++histogram_[std::min<std::size_t>(age, kAgeBins - 1)];
  return age;
}

Rank ReplicaLedger::owner_of(std::size_t element) const {
  LEEWAY_ASSERT(element < shards_.count());
  Rank owner = 0;
  while (element >= shards_[owner].offset + shards_[owner].count) ++owner;
  return owner;
}

std::uint32_t ReplicaLedger::age_of(std::size_t element) const {
  const Rank owner = owner_of(element);
  if (owner == options_.self) return 0;
  return ages_[owner][(element - shards_[owner].offset) / options_.packet_elements];
}

double ReplicaLedger::age_mean() const {
  double weighted = 0.0;
  double total = 0.0;
  for (std::size_t age = 0; age < histogram_.size(); ++age) {
    weighted += static_cast<double>(age) * static_cast<double>(histogram_[age]);
    total += static_cast<double>(histogram_[age]);
  }
  return total == 0.0 ? 0.0 : weighted / total;
}

}  // namespace leeway::collective
