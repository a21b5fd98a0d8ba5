// The server of a TcpRendezvous, on a thread of its own, and its store as this process uses it,
// without a connection.
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
  // Listens before it returns. A literal address is listened on alone. A name stands for this
  // machine, whatever it resolves to here (Debian's /etc/hosts maps a machine's own name to
  // 127.0.1.1). So all local addresses are listened on, as for an empty host; but "localhost" stays
  // inside. With port 0 the system chooses one. `log` may be null. Without a secret, connections
  // from public addresses are closed, and a public `where` is an error.
  static Result<std::unique_ptr<TcpServer>> open(const HostPort& where,
                                                 const RendezvousLimits& limits,
                                                 const TcpSecurity& security,
                                                 std::unique_ptr<Log> log);
  // Gives answers that are on their way half a second to leave, more if they are large. In a forked
  // child it leaves everything as it is.
  ~TcpServer() override;

  // Address to which others connect: the host that was asked for; without one, the address by which
  // this machine reaches other networks.
  const std::string& address() const { return address_; }

  // Connections that were refused for another secret or certificate than this job's, or because
  // only one side has any.
  struct Refusals {
    std::uint64_t count = 0;
    std::string from;  // address of the last one
    std::string why;
  };
  Refusals refusals() const;
  // The error of the latest attempt to take a connection; 0 if it was taken. While it is set, ranks
  // that come are not heard.
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

// The server of this process at an address, with a secret or without: the existing one, or a new
// one. It closes when the last user is gone. A server at a port that the system chose is found by
// the address that it got.
Result<std::shared_ptr<TcpServer>> shared_server(const HostPort& where,
                                                 const RendezvousLimits& limits,
                                                 const TcpSecurity& security,
                                                 std::unique_ptr<Log> log);

}  // namespace leeway::rendezvous
