// The server of a TcpRendezvous on a thread of its own: sockets around a StoreServer.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>

#include "rendezvous/address.h"
#include "rendezvous/log.h"
#include "rendezvous/memory_store.h"
#include "rendezvous/rendezvous_limits.h"
#include "rendezvous/tcp_security.h"

namespace leeway::rendezvous {

class TcpServer {
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
  ~TcpServer();

  std::uint16_t port() const;

  // Connections of this job's secret or certificates were asked for, and these had others; or of
  // none, and these had some.
  struct Refusals {
    std::uint64_t count = 0;
    std::string from;  // the last one's address
    std::string why;
  };
  Refusals refusals() const;

  // This process's own use of the store. After a fork the child's calls fail.
  Status put(std::string_view key, ByteSpan value, std::uint32_t readers);
  Status erase(std::string_view key);
  Result<MemoryStore*> memory();

 private:
  class Loop;
  explicit TcpServer(std::unique_ptr<Loop> loop);
  Status check_process() const;

  std::unique_ptr<Loop> loop_;
  const pid_t owner_ = ::getpid();
};

// The server of this process at an address, with a secret or without: the existing one, or a new
// one. It closes when the last user is gone.
Result<std::shared_ptr<TcpServer>> shared_server(const HostPort& where,
                                                 const RendezvousLimits& limits,
                                                 const TcpSecurity& security,
                                                 std::unique_ptr<Log> log);

}  // namespace leeway::rendezvous
