// The sending half of the UDP transport: trains become sendmmsg() calls.
//
// With UDP_SEGMENT a train is one message of the call: the kernel walks its network stack once for
// up to 64 datagrams (lab measurements: 1.6 against 0.66 GB/s). Without it every datagram is a
// message.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "leeway/transport.h"
#include "transport/udp/peer_table.h"
#include "transport/whereabouts.h"

namespace leeway::transport {

class UdpSender {
 public:
  using SendCall = int (*)(int socket, mmsghdr* messages, unsigned count, int flags);

  // Counts its work in `counters`. Tests replace `send_call`, ::sendmmsg.
  UdpSender(int socket, bool use_segmentation, const PeerTable& peers, TransportCounters& counters,
            SendCall send_call = &::sendmmsg);

  // The same as DatagramTransport::send().
  std::size_t send(std::span<const Train> trains);

  // Returns true if the system had no room at the last send(), or the rest of a train waits here.
  // The caller calls flush() when the socket is writable.
  bool blocked() const { return blocked_; }
  // Sends the rest of a train of which the system took a part. Returns false if some of it still
  // waits.
  bool flush();

  // Returns true if the kernel segments, so that a train is one message, except to peers for which
  // is_plain() is true.
  bool segmentation() const { return segmentation_; }
  // Returns true if trains to this peer go datagram by datagram, because its route cannot segment.
  bool is_plain(Rank to) const {
    return !plain_.empty() && std::find(plain_.begin(), plain_.end(), to) != plain_.end();
  }
  // See Whereabouts.
  std::optional<LengthRefusal> take_refusal();
  SendRefusals refusals_to(Rank peer) const;
  SendRefusals last_refusals() const;

 private:
  enum class Outcome { retry, full, lost };

  std::size_t send_segmented(std::span<const Train> trains);
  std::size_t send_refused(const Train& train);
  std::size_t send_by_datagram(const Train& train);
  std::size_t send_datagrams(const Train& train);
  std::size_t lay_out_trains(std::span<const Train> trains);
  std::size_t lay_out_datagrams(const Train& train);
  void address(mmsghdr& message, Rank to);
  void keep_rest(const Train& train, std::size_t offset);
  Outcome judge(int error, Rank to);
  void note_refusal(Rank to, std::size_t bytes);
  void count_sent(std::size_t datagrams, std::size_t bytes);

  struct alignas(cmsghdr) Control {
    std::byte bytes[CMSG_SPACE(sizeof(std::uint16_t))];
  };

  const int socket_;
  const PeerTable& peers_;
  TransportCounters& counters_;
  const SendCall send_call_;
  const bool segmentation_;
  bool blocked_ = false;
  std::vector<Rank> plain_;
  std::vector<LengthRefusal> refusals_;  // one a peer
  std::vector<SendRefusals> errors_;     // one a peer
  std::size_t last_error_ = 0;           // in errors_

  std::vector<mmsghdr> messages_;
  std::vector<Control> controls_;  // one UDP_SEGMENT message each, prepared once
  std::vector<iovec> pieces_;

  // Rest of a train that is sent datagram by datagram, if the system took only some of them.
  std::vector<std::byte> rest_;
  std::size_t rest_offset_ = 0;
  std::size_t rest_end_ = 0;
  std::size_t rest_segment_ = 0;
  Rank rest_to_ = kNoRank;
};

}  // namespace leeway::transport
