// A filter in the kernel for a socket that receives only sealed datagrams (WIRE 8.7). A stranger's
// datagrams are dropped before they take room in the receive buffer and before they wake this
// process.
//
// The kernel has one counter for datagrams that the filter drops and for those that find the buffer
// full. ReceiveDrops tells the two apart.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace leeway::transport {

// Makes the kernel keep a datagram only if it looks sealed and the high half of its tag equals that
// of `tag_base`. Needs no privilege. Returns false if this kernel has no such filters.
bool keep_sealed_only(int socket, std::uint32_t tag_base);

// Returns the value of a column in a table like /proc/net/snmp, where a line of names and then a
// line of numbers begin with `row`. Returns 0 if there is no such column.
std::uint64_t snmp_value(std::string_view table, std::string_view row, std::string_view column);
// Returns a value of /proc/net/snmp6, which has a name and a number on each line.
std::uint64_t snmp6_value(std::string_view table, std::string_view name);

// Datagrams that the kernel dropped at a socket.
class ReceiveDrops {
 public:
  struct Counted {
    std::uint64_t overflows = 0;  // the receive buffer was full
    std::uint64_t filtered = 0;   // the filter refused them
  };

  // `filtered`: the socket has a filter.
  ReceiveDrops(int socket, bool v6, bool filtered);
  ~ReceiveDrops();
  ReceiveDrops(const ReceiveDrops&) = delete;
  ReceiveDrops& operator=(const ReceiveDrops&) = delete;

  // Returns all drops so far. `backlog` is an upper bound on the kernel memory of the datagrams
  // that were read since the last call without emptying the queue (UdpReceiver::take_backlog()). If
  // these and the waiting datagrams take less than half of the buffer, the buffer was never full.
  // New drops are then the filter's.
  Counted count(std::uint64_t backlog);

  // Splits `drops` new drops at this socket. `overflows` says how often all sockets of the network
  // namespace found their buffers full meanwhile, so at most that many of `drops` are overflows.
  static Counted split(std::uint64_t drops, std::uint64_t overflows);

 private:
  std::uint64_t overflows_of_all() const;

  const int socket_;
  const bool v6_;
  int table_ = -1;  // -1: no filter, or no such table
  std::uint64_t drops_seen_ = 0;
  std::uint64_t overflows_seen_ = 0;
  Counted counted_;
};

}  // namespace leeway::transport
