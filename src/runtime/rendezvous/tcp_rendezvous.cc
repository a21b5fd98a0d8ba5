#include <utility>

#include "leeway/rendezvous.h"
#include "rendezvous/tcp_client.h"
#include "rendezvous/tcp_server.h"

namespace leeway {

using rendezvous::HostPort;
using rendezvous::TcpClient;
using rendezvous::TcpServer;

TcpRendezvous::TcpRendezvous(std::string address, std::shared_ptr<Rendezvous> store)
    : address_(std::move(address)), store_(std::move(store)) {}

TcpRendezvous::~TcpRendezvous() = default;

namespace {

Result<rendezvous::TcpSecurity> understood(const TcpRendezvous::Security& security) {
  auto secrets =
      keys::read_credentials({security.secret_file,
                              security.secret,
                              {security.tls_ca, security.tls_certificate, security.tls_key},
                              false});
  if (!secrets.ok()) return secrets.status();
  return rendezvous::make_tcp_security(std::move(*secrets), security.insecure);
}

}  // namespace

Result<std::shared_ptr<TcpRendezvous>> TcpRendezvous::serve(std::string_view address) {
  return serve(address, {});
}

Result<std::shared_ptr<TcpRendezvous>> TcpRendezvous::connect(std::string_view address) {
  return connect(address, {});
}

Result<std::shared_ptr<TcpRendezvous>> TcpRendezvous::serve(std::string_view address,
                                                            const Security& security) {
  const auto protection = understood(security);
  if (!protection.ok()) return protection.status();
  const auto where = rendezvous::parse_listen_address(address);
  if (!where.ok())
    return Status::error(where.status().code(), "serve: address %s", where.status().c_str());
  const auto server = rendezvous::shared_server(*where, {}, *protection, nullptr);
  if (!server.ok()) return server.status();
  return std::shared_ptr<TcpRendezvous>(new TcpRendezvous((*server)->address(), *server));
}

Result<std::shared_ptr<TcpRendezvous>> TcpRendezvous::connect(std::string_view address,
                                                              const Security& security) {
  const auto protection = understood(security);
  if (!protection.ok()) return protection.status();
  const auto where = rendezvous::parse_host_port(address);
  if (!where.ok())
    return Status::error(where.status().code(), "connect: address %s", where.status().c_str());
  return std::shared_ptr<TcpRendezvous>(
      new TcpRendezvous(rendezvous::to_text(*where),
                        std::make_unique<TcpClient>([at = *where] { return Result<HostPort>(at); },
                                                    *protection, "the process that serves it")));
}

const std::string& TcpRendezvous::address() const {
  return address_;
}

Status TcpRendezvous::put(std::string_view key, ByteSpan value) {
  return store_->put(key, value);
}

Result<std::vector<std::byte>> TcpRendezvous::get(std::string_view key, Duration patience) {
  return store_->get(key, patience);
}

Status TcpRendezvous::put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) {
  return store_->put_briefly(key, value, lifetime);
}

Status TcpRendezvous::erase(std::string_view key) {
  return store_->erase(key);
}

Status TcpRendezvous::get_each(std::span<const std::string> keys, Duration patience,
                               const Taker& take) {
  return store_->get_each(keys, patience, take);
}

Duration TcpRendezvous::round_trip() const {
  return store_->round_trip();
}

}  // namespace leeway
