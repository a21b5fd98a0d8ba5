// A server for TcpRendezvous, on a thread of its own. This process uses the store directly, without
// a connection.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leeway/rendezvous.h"
#include "rendezvous/address.h"
#include "rendezvous/log.h"
#include "rendezvous/rendezvous_limits.h"
#include "rendezvous/tcp_security.h"

namespace leeway::rendezvous {

class TcpServer final : public Rendezvous {
 public:
  // Listens before it returns. If `where` is an IP address, listens there only. If it is a name or
  // empty, listens on all local addresses, because a machine's own name may resolve to loopback
  // (Debian's /etc/hosts maps it to 127.0.1.1); "localhost" means loopback. With port 0 the system
  // chooses one. `log` may be null. Without a secret, connections from public addresses are closed,
  // and a public `where` is an error.
  static Result<std::unique_ptr<TcpServer>> open(const HostPort& where,
                                                 const RendezvousLimits& limits,
                                                 const TcpSecurity& security,
                                                 std::unique_ptr<Log> log);
  // Waits up to half a second for pending answers to leave, longer if they are large. Does nothing
  // in a forked child.
  ~TcpServer() override;

  // Address to which others connect: the host that was asked for, or the address by which this
  // machine reaches other networks if the host was empty.
  const std::string& address() const { return address_; }

  // Connections refused because they have another secret or certificate than this job, or only one
  // side has any.
  struct Refusals {
    std::uint64_t count = 0;
    std::string from;  // address of the last one
    std::string why;
  };
  Refusals refusals() const;
  // errno of the latest attempt to accept a connection; 0 if it succeeded. While it is not 0, new
  // ranks get no answer.
  int accept_error() const;

  // After a fork the child's calls fail.
  Status put(std::string_view key, ByteSpan value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override;
  Status put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) override;
  Status erase(std::string_view key) override;
  Status get_each(std::span<const std::string> keys, Duration patience, const Taker& take) override;

  // Waits until the value of `key` was read `reads` times, or time is up.
  void wait_read(std::string_view key, std::uint32_t reads, Duration patience);

 private:
  class Loop;
  TcpServer(std::unique_ptr<Loop> loop, std::string address);
  Status check_process() const;

  std::unique_ptr<Loop> loop_;
  const std::string address_;
  const pid_t owner_ = ::getpid();
};

// Returns this process's server at `where` with this security, and opens it if there is none. The
// server closes when its last user is gone. If the system chose its port, later calls must name
// that port to share it.
Result<std::shared_ptr<TcpServer>> shared_server(const HostPort& where,
                                                 const RendezvousLimits& limits,
                                                 const TcpSecurity& security,
                                                 std::unique_ptr<Log> log);

}  // namespace leeway::rendezvous
