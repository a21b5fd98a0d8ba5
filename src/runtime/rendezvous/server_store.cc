#include "rendezvous/server_store.h"

namespace leeway::rendezvous {

namespace {

std::unique_ptr<ServerStore> store_over(const std::shared_ptr<TcpServer>& server,
                                        const HostPort& where) {
  HostPort reached = {where.host, server->port()};
  if (is_any_host(where.host)) reached.host = outward_address().to_string();
  return std::make_unique<ServerStore>(server, to_text(reached));
}

}  // namespace

Result<std::unique_ptr<ServerStore>> ServerStore::open_shared(const HostPort& where,
                                                              const RendezvousLimits& limits,
                                                              const TcpSecurity& security,
                                                              std::unique_ptr<Log> log) {
  auto server = shared_server(where, limits, security, std::move(log));
  if (!server.ok()) return server.status();
  return store_over(*server, where);
}

Result<std::unique_ptr<ServerStore>> ServerStore::open_own(const HostPort& where,
                                                           const RendezvousLimits& limits,
                                                           const TcpSecurity& security) {
  auto server = TcpServer::open(where, limits, security, nullptr);
  if (!server.ok()) return server.status();
  return store_over(std::shared_ptr<TcpServer>(std::move(*server)), where);
}

Status ServerStore::put(std::string_view key, ByteSpan value) {
  return server_->put(key, value, 0);
}

Status ServerStore::put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) {
  return server_->put(key, value, lifetime.readers);
}

Status ServerStore::erase(std::string_view key) {
  return server_->erase(key);
}

Result<std::vector<std::byte>> ServerStore::get(std::string_view key, Duration patience) {
  const auto memory = server_->memory();
  if (!memory.ok()) return memory.status();
  return (*memory)->get(key, patience);
}

Status ServerStore::get_each(std::span<const std::string> keys, Duration patience,
                             const Taker& take) {
  const auto memory = server_->memory();
  if (!memory.ok()) return memory.status();
  return (*memory)->get_each(keys, patience, take);
}

void ServerStore::wait_read(std::string_view key, std::uint32_t reads, Duration patience) {
  const auto memory = server_->memory();
  if (memory.ok()) (*memory)->wait_read(key, reads, patience);
}

}  // namespace leeway::rendezvous
