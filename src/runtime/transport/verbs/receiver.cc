#include "transport/verbs/receiver.h"

#include <algorithm>

namespace leeway::transport {
namespace {

constexpr std::size_t kReceivedAtOnce = 64;
constexpr std::size_t kCacheLine = 64;

// If this many batches contain nothing but refused datagrams, receive() returns nothing. So a flood
// cannot keep the caller from its timers.
constexpr int kRefusedBatchesMax = 4;

}  // namespace

std::size_t VerbsReceiver::slot_bytes(std::size_t mtu_bytes) {
  return (kNetworkHeaderBytes + mtu_bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

VerbsReceiver::VerbsReceiver(const Setup& setup, const VerbsPeers& peers,
                             TransportCounters& counters)
    : queue_pair_(setup.queue_pair),
      completions_(setup.completions),
      entries_(setup.entries),
      datagram_bytes_(setup.datagram_bytes),
      slot_bytes_(slot_bytes(setup.mtu_bytes)),
      slots_(setup.slots),
      peers_(peers),
      requests_(setup.entries),
      pieces_(setup.entries),
      used_(setup.entries),
      arrived_(kReceivedAtOnce),
      counters_(counters) {
  for (std::size_t i = 0; i < entries_; ++i) {
    const std::size_t room = kNetworkHeaderBytes + setup.mtu_bytes;
    pieces_[i] = {reinterpret_cast<std::uintptr_t>(slot(i)), static_cast<std::uint32_t>(room),
                  setup.slots_key};
    requests_[i] = {.wr_id = i, .next = nullptr, .sg_list = &pieces_[i], .num_sge = 1};
    used_[i] = static_cast<std::uint32_t>(i);
  }
}

int VerbsReceiver::start() {
  used_count_ = entries_;
  post_again();
  return failure_ == nullptr ? 0 : ENOMEM;
}

void VerbsReceiver::post_again() {
  if (used_count_ == 0) return;
  for (std::size_t i = 0; i + 1 < used_count_; ++i)
    requests_[used_[i]].next = &requests_[used_[i + 1]];
  requests_[used_[used_count_ - 1]].next = nullptr;
  ibv_recv_wr* refused = nullptr;
  if (ibv_post_recv(queue_pair_, &requests_[used_[0]], &refused) != 0) {
    failure_ = "it takes no memory for what arrives";
  }
  used_count_ = 0;
}

std::size_t VerbsReceiver::receive(std::span<Received> out) {
  if (out.empty() || abandoned_) return 0;
  std::size_t filled = 0;
  for (int batch = 0; filled == 0 && batch < kRefusedBatchesMax; ++batch) {
    post_again();  // the caller no longer owns the datagrams of the last call
    if (!fetch()) break;
    filled = hand_out(out);
  }
  return filled;
}

bool VerbsReceiver::pending() {
  return !abandoned_ && fetch();
}

bool VerbsReceiver::fetch() {
  if (current_ < arrived_count_) return true;
  if (failure_ != nullptr) return false;
  ++counters_.receive_calls;
  current_ = 0;
  const int count = ibv_poll_cq(completions_, static_cast<int>(arrived_.size()), arrived_.data());
  arrived_count_ = count > 0 ? static_cast<std::size_t>(count) : 0;
  if (count < 0) failure_ = "its completions cannot be read";
  return arrived_count_ > 0;
}

std::size_t VerbsReceiver::hand_out(std::span<Received> out) {
  std::size_t filled = 0;
  while (current_ < arrived_count_ && filled < out.size()) {
    const ibv_wc& completion = arrived_[current_++];
    if (completion.status != IBV_WC_SUCCESS) {
      failure_ = ibv_wc_status_str(completion.status);
      continue;
    }
    // Ignores a completion whose number is no slot's.
    if (completion.wr_id >= entries_ || used_count_ == entries_) continue;
    used_[used_count_++] = static_cast<std::uint32_t>(completion.wr_id);
    if (admit(completion, out[filled])) ++filled;
  }
  counters_.datagrams_received += filled;
  return filled;
}

// Fills in `out` and returns true if the datagram is a peer's.
bool VerbsReceiver::admit(const ibv_wc& completion, Received& out) {
  std::byte* const start = slot(completion.wr_id);
  const std::size_t bytes = completion.byte_len;
  const Rank from = bytes < kNetworkHeaderBytes ? kNoRank : peers_.find(completion, start);
  if (from == kNoRank) {
    ++counters_.from_strangers;
    return false;
  }
  if (from == peers_.self()) return false;  // a multicast datagram of our own that came back
  if (bytes - kNetworkHeaderBytes > datagram_bytes_) {
    ++counters_.oversized;
    return false;
  }
  out = {from, {start + kNetworkHeaderBytes, bytes - kNetworkHeaderBytes}};
  counters_.bytes_received += bytes - kNetworkHeaderBytes;
  return true;
}

}  // namespace leeway::transport
