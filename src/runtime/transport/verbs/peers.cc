#include "transport/verbs/peers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/limits.h"

namespace leeway::transport {
namespace {

// The kNetworkHeaderBytes hold an IPv4 header at their end, or are filled by an IPv6 header or a
// GRH.
constexpr std::size_t kIpv4Offset = 20;
constexpr std::size_t kIpv4SourceOffset = kIpv4Offset + 12;
constexpr std::size_t kGidOffset = 8;
constexpr auto kIpv4VersionAndLength = std::byte{0x45};

constexpr Gid kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
constexpr std::size_t kMappedBytes = 12;

}  // namespace

Status VerbsPeers::assign(std::span<const VerbsAddress> by_rank, const VerbsAddress& own) {
  if (by_rank.empty() || by_rank.size() > static_cast<std::size_t>(limits::kPeersMax)) {
    return Status::error(StatusCode::kResourceExhausted, "%zu peers: 1 to %d are supported",
                         by_rank.size(), limits::kPeersMax);
  }
  VerbsPeers fresh;
  fresh.ipv4_ = own.link == LinkLayer::ethernet && is_mapped(own.gid);
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const VerbsAddress& peer = by_rank[rank];
    if (peer.link != own.link) {
      return Status::error(
          StatusCode::kMismatch,
          "rank %zu is on %s and this rank is not: all must be on one RDMA network", rank,
          peer.link == LinkLayer::ethernet ? "RoCE" : "InfiniBand");
    }
    if (peer.link == LinkLayer::ethernet && is_mapped(peer.gid) != fresh.ipv4_) {
      return Status::error(StatusCode::kMismatch,
                           "rank %zu is at %s and this rank at %s: IPv4 and IPv6 cannot be mixed",
                           rank, ip_text(peer.gid).c_str(), ip_text(own.gid).c_str());
    }
    const auto number = static_cast<Rank>(rank);
    if (peer == own) fresh.self_ = number;
    fresh.entries_.push_back({{peer.gid, 0, peer.queue_pair}, number});
    if (peer.lid != 0) fresh.entries_.push_back({{{}, peer.lid, peer.queue_pair}, number});
  }
  if (fresh.self_ == kNoRank) {
    return Status::error(StatusCode::kMismatch, "no rank has this rank's address %s queue pair %u",
                         ip_text(own.gid).c_str(), own.queue_pair);
  }
  const auto key_of_entry = [](const Entry& entry) -> const Key& { return entry.key; };
  std::ranges::sort(fresh.entries_, {}, key_of_entry);
  const auto twin = std::ranges::adjacent_find(fresh.entries_, {}, key_of_entry);
  if (twin != fresh.entries_.end()) {
    return Status::error(StatusCode::kMismatch,
                         "ranks %u and %u have the same address %s queue pair %u",
                         unsigned{twin->rank}, unsigned{std::next(twin)->rank},
                         ip_text(by_rank[twin->rank].gid).c_str(), twin->key.queue_pair);
  }
  *this = std::move(fresh);
  return {};
}

VerbsPeers::Key VerbsPeers::key_of(const ibv_wc& completion, const std::byte* header) const {
  Key key;
  key.queue_pair = completion.src_qp;
  if ((completion.wc_flags & IBV_WC_GRH) == 0) {
    key.lid = completion.slid;
  } else if (!ipv4_) {
    std::memcpy(key.gid.data(), header + kGidOffset, key.gid.size());
  } else if (header[kIpv4Offset] == kIpv4VersionAndLength) {
    key.gid = kMapped;
    std::memcpy(key.gid.data() + kMappedBytes, header + kIpv4SourceOffset, 4);
  }
  return key;  // an IPv6 datagram to an IPv4 group matches nobody
}

Rank VerbsPeers::find(const ibv_wc& completion, const std::byte* header) const {
  const Key key = key_of(completion, header);
  const auto at = std::ranges::lower_bound(entries_, key, {}, &Entry::key);
  return at != entries_.end() && at->key == key ? at->rank : kNoRank;
}

}  // namespace leeway::transport
