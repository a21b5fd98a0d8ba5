#include "transport/udp/receiver.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace leeway::transport {
namespace {

// The largest coalesced message; 8 of them are half of a 1 MiB second-level cache.
constexpr std::size_t kCoalescedBytes = 65536;
constexpr std::size_t kCoalescedBuffers = 8;
// Without coalescing a buffer holds one datagram.
constexpr std::size_t kPlainBuffers = 64;
constexpr std::size_t kCacheLine = 64;

// If this many batches contain nothing but refused datagrams, receive() returns nothing. So a flood
// cannot keep the caller from its timers.
constexpr int kRefusedBatchesMax = 4;

// The kernel accounts at most kMemoryOfMessage + kMemoryPerByte times the bytes for a message: its
// bytes, and a page for each datagram. Datagrams of a coalesced message have at least 512 bytes, so
// their pages of 4,096 bytes take at most 8 times the bytes.
constexpr std::uint64_t kMemoryOfMessage = 4096;
constexpr std::uint64_t kMemoryPerByte = 9;

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

// The kernel's notes about a message. A message without a segment size is one datagram. All
// datagrams of a coalesced message have the same ECN mark.
struct Notes {
  std::size_t segment = 0;
  Ecn ecn = Ecn::none;
};

Notes notes_of(const mmsghdr& message) {
  Notes notes{.segment = std::max<std::size_t>(message.msg_len, 1)};
  msghdr header = message.msg_hdr;
  for (cmsghdr* note = CMSG_FIRSTHDR(&header); note != nullptr; note = CMSG_NXTHDR(&header, note)) {
    const unsigned char* const data = CMSG_DATA(note);
    if (note->cmsg_level == SOL_UDP && note->cmsg_type == UDP_GRO) {
      int segment = 0;
      std::memcpy(&segment, data, sizeof(segment));
      if (segment > 0) notes.segment = static_cast<std::size_t>(segment);
    } else if (note->cmsg_level == IPPROTO_IP && note->cmsg_type == IP_TOS) {
      notes.ecn = static_cast<Ecn>(*data & 3);
    } else if (note->cmsg_level == IPPROTO_IPV6 && note->cmsg_type == IPV6_TCLASS) {
      int traffic_class = 0;
      std::memcpy(&traffic_class, data, sizeof(traffic_class));
      notes.ecn = static_cast<Ecn>(traffic_class & 3);
    }
  }
  return notes;
}

}  // namespace

UdpReceiver::UdpReceiver(int socket, bool coalescing, std::size_t datagram_bytes,
                         const PeerTable& peers, TransportCounters& counters,
                         ReceiveCall receive_call, Rank own)
    : socket_(socket),
      peers_(peers),
      counters_(counters),
      receive_call_(receive_call),
      own_(own),
      datagram_bytes_(datagram_bytes),
      buffer_bytes_(coalescing ? kCoalescedBytes : round_up(datagram_bytes)),
      buffers_(coalescing ? kCoalescedBuffers : kPlainBuffers),
      arena_(buffer_bytes_ * buffers_),
      messages_(buffers_),
      pieces_(buffers_),
      names_(buffers_),
      controls_(buffers_) {
  const std::size_t capacity = coalescing ? kCoalescedBytes : datagram_bytes;
  for (std::size_t i = 0; i < buffers_; ++i) {
    pieces_[i] = {buffer_of(i), capacity};
    messages_[i].msg_hdr.msg_name = &names_[i];
    messages_[i].msg_hdr.msg_iov = &pieces_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
    messages_[i].msg_hdr.msg_control = controls_[i].bytes;
  }
}

std::size_t UdpReceiver::receive(std::span<Received> out) {
  if (out.empty()) return 0;
  std::size_t filled = hand_out(out);
  // Lent datagrams must stay valid until the next call. So the buffers are refilled only as long as
  // this call has lent none.
  for (int batch = 0; filled == 0 && batch < kRefusedBatchesMax && refill(); ++batch)
    filled = hand_out(out);
  return filled;
}

std::uint64_t UdpReceiver::take_backlog() {
  return std::exchange(backlog_max_, backlog_);
}

bool UdpReceiver::refill() {
  if (arrived_ < buffers_) backlog_ = 0;  // the queue was empty
  for (std::size_t i = 0; i < buffers_; ++i) {
    messages_[i].msg_hdr.msg_namelen = sizeof(sockaddr_storage);
    messages_[i].msg_hdr.msg_controllen = sizeof(controls_[i].bytes);
  }
  ++counters_.receive_calls;
  const int count = receive_call_(socket_, messages_.data(), static_cast<unsigned>(buffers_),
                                  MSG_DONTWAIT, nullptr);
  current_ = 0;
  arrived_ = count > 0 ? static_cast<std::size_t>(count) : 0;
  for (std::size_t i = 0; i < arrived_; ++i)
    backlog_ += kMemoryOfMessage + kMemoryPerByte * messages_[i].msg_len;
  backlog_max_ = std::max(backlog_max_, backlog_);
  return arrived_ > 0;
}

std::size_t UdpReceiver::hand_out(std::span<Received> out) {
  std::size_t filled = 0;
  while (current_ < arrived_ && filled < out.size()) {
    const std::size_t total = messages_[current_].msg_len;
    if (open_ || open_message()) {
      // Empty datagrams are handed on, too: the wire format judges them.
      do {
        const std::size_t bytes = std::min(segment_, total - offset_);
        out[filled++] = {from_, {buffer_of(current_) + offset_, bytes}, ecn_};
        offset_ += bytes;
        counters_.bytes_received += bytes;
      } while (offset_ < total && filled < out.size());
      if (offset_ < total) break;
    }
    open_ = false;
    ++current_;
  }
  counters_.datagrams_received += filled;
  return filled;
}

// Reads the notes and the sender of a new message. Returns false if the message's datagrams are
// refused.
bool UdpReceiver::open_message() {
  const mmsghdr& message = messages_[current_];
  const Notes notes = notes_of(message);
  segment_ = notes.segment;
  ecn_ = notes.ecn;
  const std::size_t datagrams =
      std::max<std::size_t>((message.msg_len + segment_ - 1) / segment_, 1);
  from_ = peers_.find(names_[current_]);
  if (from_ == kNoRank && !shows_strangers_) {
    counters_.from_strangers += datagrams;
    stranger_ = names_[current_];
    return false;
  }
  if (from_ == own_ && own_ != kNoRank) return false;
  if ((message.msg_hdr.msg_flags & MSG_TRUNC) != 0 ||
      std::min<std::size_t>(segment_, message.msg_len) > datagram_bytes_) {
    counters_.oversized += datagrams;
    return false;
  }
  offset_ = 0;
  open_ = true;
  return true;
}

}  // namespace leeway::transport
