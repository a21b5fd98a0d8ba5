#include "transport/udp/sender.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/contracts.h"
#include "transport/slice_cursor.h"
#include "transport/train_limits.h"

namespace leeway::transport {
namespace {

// Limit on the trains in one system call. The call's own cost is small beside 16 trains of up to 64
// KiB.
constexpr std::size_t kTrainsPerCall = 16;

iovec piece(const std::byte* data, std::size_t bytes) {
  return {const_cast<std::byte*>(data), bytes};
}

// Returns the entry of this peer, or the list's end.
auto entry_of(auto& list, Rank to) {
  return std::find_if(list.begin(), list.end(), [to](const auto& one) { return one.to == to; });
}

bool may_mean_no_segmentation(int error) {
  return error == EIO || error == EINVAL || error == EMSGSIZE || error == EOPNOTSUPP ||
         error == ENOPROTOOPT;
}

}  // namespace

UdpSender::UdpSender(int socket, bool use_segmentation, const PeerTable& peers,
                     TransportCounters& counters, SendCall send_call)
    : socket_(socket),
      peers_(peers),
      counters_(counters),
      send_call_(send_call),
      segmentation_(use_segmentation),
      messages_(std::max(kTrainsPerCall, kTrainDatagramsMax)),
      controls_(kTrainsPerCall),
      pieces_(kTrainsPerCall * kTrainSlicesMax),
      rest_(kTrainBytesMax) {
  for (Control& control : controls_) {
    auto* header = reinterpret_cast<cmsghdr*>(control.bytes);
    header->cmsg_level = SOL_UDP;
    header->cmsg_type = UDP_SEGMENT;
    header->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
  }
}

std::size_t UdpSender::send(std::span<const Train> trains) {
  if (!flush()) return 0;
  std::size_t taken = 0;
  while (taken < trains.size() && !blocked_) {
    taken += segmentation_ && !is_plain(trains[taken].to) ? send_segmented(trains.subspan(taken))
                                                          : send_by_datagram(trains[taken]);
  }
  return taken;
}

bool UdpSender::flush() {
  blocked_ = false;
  if (rest_offset_ == rest_end_) return true;
  const Slice slice{rest_.data() + rest_offset_, rest_end_ - rest_offset_};
  const Train train{rest_to_, rest_segment_, slice.bytes, {&slice, 1}};
  rest_offset_ += std::min(send_datagrams(train) * rest_segment_, slice.bytes);
  return !blocked_;
}

std::size_t UdpSender::send_segmented(std::span<const Train> trains) {
  const std::size_t count = lay_out_trains(trains);
  ++counters_.send_calls;
  const int sent =
      send_call_(socket_, messages_.data(), static_cast<unsigned>(count), MSG_DONTWAIT);
  if (sent <= 0) {
    const int error = errno;
    if (datagrams_of(trains[0]) > 1 && may_mean_no_segmentation(error))
      return send_refused(trains[0]);
    const bool lost = judge(error, trains[0].to) == Outcome::lost;
    if (lost && error == EMSGSIZE) note_refusal(trains[0].to, trains[0].segment_bytes);
    return lost ? 1 : 0;
  }
  for (int i = 0; i < sent; ++i) count_sent(datagrams_of(trains[i]), trains[i].total_bytes);
  return static_cast<std::size_t>(sent);
}

// A device or route that cannot segment refuses a train only when the train is sent, with the same
// error as if its datagrams were too long. So the datagrams are now sent one by one. If all go out,
// they were not too long, and the route cannot segment. From then on trains to this peer alone go
// datagram by datagram.
std::size_t UdpSender::send_refused(const Train& train) {
  const std::uint64_t sent_before = counters_.datagrams_sent;
  const std::uint64_t errors_before = counters_.send_errors;
  const std::size_t taken = send_by_datagram(train);
  if (counters_.datagrams_sent > sent_before && counters_.send_errors == errors_before)
    plain_.push_back(train.to);
  return taken;
}

std::size_t UdpSender::send_by_datagram(const Train& train) {
  const std::size_t done = send_datagrams(train);
  if (!blocked_) return 1;
  if (done == 0) return 0;
  keep_rest(train, done * train.segment_bytes);
  return 1;
}

// Sends a train one datagram at a time. Returns the number of datagrams that were sent or lost. If
// this is less than all of them, blocked_ is set.
std::size_t UdpSender::send_datagrams(const Train& train) {
  const std::size_t count = lay_out_datagrams(train);
  std::size_t done = 0;
  while (done < count && !blocked_) {
    ++counters_.send_calls;
    const int sent = send_call_(socket_, messages_.data() + done,
                                static_cast<unsigned>(count - done), MSG_DONTWAIT);
    if (sent <= 0) {
      const int error = errno;
      if (judge(error, train.to) != Outcome::lost) continue;
      const std::size_t at = done++ * train.segment_bytes;
      if (error == EMSGSIZE)
        note_refusal(train.to, std::min(train.segment_bytes, train.total_bytes - at));
      continue;
    }
    const std::size_t from = done * train.segment_bytes;
    done += static_cast<std::size_t>(sent);
    count_sent(static_cast<std::size_t>(sent),
               std::min(done * train.segment_bytes, train.total_bytes) - from);
  }
  return done;
}

void UdpSender::address(mmsghdr& message, Rank to) {
  LEEWAY_ASSERT(peers_.knows(to));
  const UdpAddress& address = peers_.address_of(to);
  message.msg_hdr.msg_name = const_cast<sockaddr*>(address.data());
  message.msg_hdr.msg_namelen = static_cast<socklen_t>(address.size());
}

std::size_t UdpSender::lay_out_trains(std::span<const Train> trains) {
  std::size_t count = std::min(trains.size(), kTrainsPerCall);
  for (std::size_t i = 1; i < count && !plain_.empty(); ++i) {
    if (is_plain(trains[i].to)) count = i;
  }
  iovec* next = pieces_.data();
  for (std::size_t i = 0; i < count; ++i) {
    const Train& train = trains[i];
    LEEWAY_ASSERT(train.slices.size() <= kTrainSlicesMax && train.total_bytes <= kTrainBytesMax);
    msghdr& header = messages_[i].msg_hdr;
    address(messages_[i], train.to);
    header.msg_iov = next;
    header.msg_iovlen = train.slices.size();
    for (const Slice& slice : train.slices) *next++ = piece(slice.data, slice.bytes);
    const bool segmented = datagrams_of(train) > 1;
    header.msg_control = segmented ? controls_[i].bytes : nullptr;
    header.msg_controllen = segmented ? sizeof(controls_[i].bytes) : 0;
    if (segmented) {
      const auto segment = static_cast<std::uint16_t>(train.segment_bytes);
      std::memcpy(CMSG_DATA(reinterpret_cast<cmsghdr*>(controls_[i].bytes)), &segment,
                  sizeof(segment));
    }
  }
  return count;
}

// Cuts the train's slices at the borders of datagrams, and makes a message of the parts of each
// datagram. Returns the number of datagrams.
std::size_t UdpSender::lay_out_datagrams(const Train& train) {
  const std::size_t count = datagrams_of(train);
  LEEWAY_ASSERT(count <= kTrainDatagramsMax && train.slices.size() <= kTrainSlicesMax);
  iovec* next = pieces_.data();
  SliceCursor cursor(train.slices);
  for (std::size_t i = 0; i < count; ++i) {
    msghdr& header = messages_[i].msg_hdr;
    address(messages_[i], train.to);
    header.msg_iov = next;
    header.msg_control = nullptr;
    header.msg_controllen = 0;
    cursor.take(
        std::min(train.segment_bytes, train.total_bytes - i * train.segment_bytes),
        [&next](const std::byte* data, std::size_t bytes) { *next++ = piece(data, bytes); });
    header.msg_iovlen = static_cast<std::size_t>(next - header.msg_iov);
  }
  return count;
}

void UdpSender::keep_rest(const Train& train, std::size_t offset) {
  SliceCursor cursor(train.slices);
  cursor.skip(offset);
  cursor.copy_to({rest_.data(), train.total_bytes - offset});
  rest_offset_ = 0;
  rest_end_ = train.total_bytes - offset;
  rest_segment_ = train.segment_bytes;
  rest_to_ = train.to;
}

UdpSender::Outcome UdpSender::judge(int error, Rank to) {
  if (error == EINTR) return Outcome::retry;
  if (error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS) {
    blocked_ = true;
    return Outcome::full;
  }
  ++counters_.send_errors;
  auto known = entry_of(errors_, to);
  if (known == errors_.end()) known = errors_.insert(known, {.to = to});
  last_error_ = static_cast<std::size_t>(known - errors_.begin());
  ++known->count;
  known->error = error;
  known->at = network_address(peers_.address_of(to));
  return Outcome::lost;
}

SendRefusals UdpSender::refusals_to(Rank peer) const {
  const auto known = entry_of(errors_, peer);
  return known == errors_.end() ? SendRefusals{.to = peer} : *known;
}

SendRefusals UdpSender::last_refusals() const {
  return errors_.empty() ? SendRefusals() : errors_[last_error_];
}

void UdpSender::note_refusal(Rank to, std::size_t bytes) {
  const auto known = entry_of(refusals_, to);
  known == refusals_.end() ? refusals_.push_back({to, bytes}) : void(known->bytes = bytes);
}

std::optional<LengthRefusal> UdpSender::take_refusal() {
  if (refusals_.empty()) return std::nullopt;
  const LengthRefusal refusal = refusals_.back();
  refusals_.pop_back();
  return refusal;
}

void UdpSender::count_sent(std::size_t datagrams, std::size_t bytes) {
  counters_.datagrams_sent += datagrams;
  counters_.bytes_sent += bytes;
}

}  // namespace leeway::transport
