// The receiving half of the UDP transport: recvmmsg() into a small arena, cut into datagrams in
// place.
//
// With UDP_GRO the kernel hands over up to 64 KiB of equal datagrams of one sender as one message
// (lab measurements: 8.2 against 1.6 GB/s). The arena is small on purpose: it has to stay in a
// core's second-level cache between the copy by the kernel and the caller's reading.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/transport.h"
#include "transport/udp/peer_table.h"

namespace leeway::transport {

class UdpReceiver {
 public:
  using ReceiveCall = int (*)(int socket, mmsghdr* messages, unsigned count, int flags,
                              timespec* timeout);

  // Datagrams larger than `datagram_bytes` are dropped and counted. Those from `own` are multicast
  // that came back: they are dropped and not counted. Counts its work in `counters`. Tests replace
  // `receive_call`, ::recvmmsg.
  UdpReceiver(int socket, bool coalescing, std::size_t datagram_bytes, const PeerTable& peers,
              TransportCounters& counters, ReceiveCall receive_call = &::recvmmsg,
              Rank own = kNoRank);

  // From now on also hands out datagrams from unknown addresses, with kNoRank as their sender.
  void show_strangers() { shows_strangers_ = true; }
  // Returns the address that a datagram of the latest receive() call came from.
  const sockaddr_storage& source_of(const Received& received) const {
    const auto at = static_cast<std::size_t>(received.bytes.data() - arena_.data());
    return names_[at / buffer_bytes_];
  }

  // Returns the address of the latest datagram of an unknown sender; it has no port if none came.
  const sockaddr_storage& last_stranger() const { return stranger_; }

  // The same as DatagramTransport::receive(). Makes at most one system call if no strangers send.
  std::size_t receive(std::span<Received> out);

  // Returns true if the arena has datagrams that the last receive() had no room for.
  bool pending() const { return current_ < arrived_; }

  // Returns an upper bound on the kernel memory that the socket's queue has taken at any time since
  // the last call. It is the greatest sum over batches that were read in a row without finding the
  // queue empty.
  std::uint64_t take_backlog();

 private:
  struct alignas(cmsghdr) Control {
    std::byte bytes[2 * CMSG_SPACE(sizeof(int))];  // the segment's size, and the byte with the mark
  };

  bool refill();
  std::size_t hand_out(std::span<Received> out);
  bool open_message();
  std::byte* buffer_of(std::size_t message) { return arena_.data() + message * buffer_bytes_; }

  const int socket_;
  const PeerTable& peers_;
  TransportCounters& counters_;
  const ReceiveCall receive_call_;
  const Rank own_;
  bool shows_strangers_ = false;
  const std::size_t datagram_bytes_;
  const std::size_t buffer_bytes_;
  const std::size_t buffers_;

  std::vector<std::byte> arena_;
  std::vector<mmsghdr> messages_;
  std::vector<iovec> pieces_;
  std::vector<sockaddr_storage> names_;
  std::vector<Control> controls_;

  // The message from which datagrams are being handed out, and the position in it.
  std::size_t arrived_ = 0;
  std::size_t current_ = 0;
  bool open_ = false;
  Rank from_ = kNoRank;
  std::size_t segment_ = 0;
  Ecn ecn_ = Ecn::none;
  std::size_t offset_ = 0;

  std::uint64_t backlog_ = 0;  // since the queue was empty
  std::uint64_t backlog_max_ = 0;

  sockaddr_storage stranger_{};  // the latest unknown sender
};

}  // namespace leeway::transport
