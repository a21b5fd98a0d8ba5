// The store of a server that this process owns, used without a connection.
#pragma once

#include <memory>
#include <string>

#include "leeway/rendezvous.h"
#include "rendezvous/tcp_server.h"

namespace leeway::rendezvous {

class ServerStore final : public Rendezvous {
 public:
  // The server that this process shares at the address. It is opened if need be. `log` may be null.
  static Result<std::unique_ptr<ServerStore>> open_shared(const HostPort& where,
                                                          const RendezvousLimits& limits,
                                                          const TcpSecurity& security,
                                                          std::unique_ptr<Log> log);
  // A server of its own.
  static Result<std::unique_ptr<ServerStore>> open_own(const HostPort& where,
                                                       const RendezvousLimits& limits,
                                                       const TcpSecurity& security);

  ServerStore(std::shared_ptr<TcpServer> server, std::string address)
      : server_(std::move(server)), address_(std::move(address)) {}

  // Address to which others connect: the host that was asked for; without one, the address by which
  // this machine reaches other networks.
  const std::string& address() const { return address_; }
  const std::shared_ptr<TcpServer>& server() const { return server_; }

  Status put(std::string_view key, ByteSpan value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override;
  Status put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) override;
  Status erase(std::string_view key) override;
  Status get_each(std::span<const std::string> keys, Duration patience, const Taker& take) override;

  TcpServer::Refusals refusals() const { return server_->refusals(); }

  // Waits until the value of `key` was read `reads` times, or time is up.
  void wait_read(std::string_view key, std::uint32_t reads, Duration patience);

 private:
  const std::shared_ptr<TcpServer> server_;
  const std::string address_;
};

}  // namespace leeway::rendezvous
