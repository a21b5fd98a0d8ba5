#include "rendezvous/address.h"

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <cstring>
#include <system_error>

#include "base/read_number.h"
#include "transport/udp/address.h"

namespace leeway::rendezvous {
namespace {

// Returns an error whose text does not say what the address is for: the caller adds that.
Status malformed(std::string_view text, int port_min) {
  return Status::error(StatusCode::kInvalidArgument,
                       "\"%.*s\" is not host:port or [v6]:port with a port of %d to 65535",
                       static_cast<int>(std::min<std::size_t>(text.size(), 80)), text.data(),
                       port_min);
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  return read_number(text, port) ? std::optional(port) : std::nullopt;
}

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
  auto where = parse_listen_address(text);
  if (!where.ok() || where->host.empty() || where->port == 0) return malformed(text, 1);
  return where;
}

Result<HostPort> parse_listen_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return malformed(text, 0);
  std::string_view host = text.substr(0, colon);
  const auto port = parse_port(text.substr(colon + 1));
  if (!port) return malformed(text, 0);
  if (host.empty()) return HostPort{{}, *port};
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const bool has_colon = host.find(':') != std::string_view::npos;
  if (host.empty() || has_colon != bracketed) return malformed(text, 0);
  return HostPort{std::string(host), *port};
}

bool is_any_host(std::string_view host) {
  return host.empty() || host == "0.0.0.0" || host == "::";
}

asio::ip::address outward_address() {
  // 203.0.113.1 is reserved for documentation, so it stands for any other network.
  const auto found = transport::local_address_towards({asio::ip::make_address("203.0.113.1"), 9});
  if (found.ok()) return *found;
  const auto own = transport::first_network_address();
  return own ? *own : asio::ip::address(asio::ip::address_v4::loopback());
}

Result<asio::ip::address> address_towards(std::string_view rendezvous) {
  if (rendezvous.empty()) return outward_address();
  const auto where = parse_listen_address(rendezvous);
  if (!where.ok()) return where.status();
  if (is_any_host(where->host)) return outward_address();
  asio::io_context io;
  const auto resolved = resolve(io, *where);
  if (!resolved.ok()) return resolved.status();
  const auto& there = resolved->endpoints.front();
  const bool is_own_name =
      !resolved->literal && where->host != "localhost" && there.address().is_loopback();
  if (is_own_name) return outward_address();
  return transport::local_address_towards(
      {there.address(), std::max<std::uint16_t>(1, there.port())});
}

Result<ResolvedHost> resolve(asio::io_context& io, const HostPort& where) {
  std::error_code error;
  const auto literal = asio::ip::make_address(where.host, error);
  if (!error) return ResolvedHost{{{literal, where.port}}, true};

  asio::ip::tcp::resolver resolver(io);
  const auto found = resolver.resolve(where.host, std::to_string(where.port), error);
  if (error || found.empty()) {
    // Systems without /etc/hosts do not know this name, which means loopback (RFC 6761, 6.3).
    if (where.host == "localhost") {
      return ResolvedHost{{{asio::ip::address_v4::loopback(), where.port},
                           {asio::ip::address_v6::loopback(), where.port}},
                          false};
    }
    const bool unknown =
        !error || error == asio::error::host_not_found || error == asio::error::no_data;
    return Status::error(unknown ? StatusCode::kInvalidArgument : StatusCode::kUnavailable,
                         "rendezvous host \"%.80s\" does not resolve (%s); check the name, or give "
                         "rank 0's address as "
                         "LEEWAY_RENDEZVOUS=address:port",
                         where.host.c_str(), error.message().c_str());
  }
  ResolvedHost resolved;
  for (const auto& entry : found) resolved.endpoints.push_back(entry.endpoint());
  return resolved;
}

asio::ip::address unmapped(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

bool is_private(const asio::ip::address& address) {
  const asio::ip::address plain = unmapped(address);
  if (plain.is_loopback() || plain.is_unspecified()) return true;
  if (plain.is_v6()) {
    const auto bytes = plain.to_v6().to_bytes();
    const bool is_documentation =
        bytes[0] == 0x20 && bytes[1] == 0x01 && bytes[2] == 0x0D && bytes[3] == 0xB8;
    return plain.to_v6().is_link_local() || (bytes[0] & 0xFE) == 0xFC || is_documentation;
  }
  struct Network {
    std::uint32_t first;
    int bits;
  };
  static constexpr std::array<Network, 9> kPrivate = {{{0x0A000000, 8},     // RFC 1918
                                                       {0xAC100000, 12},    // RFC 1918
                                                       {0xC0A80000, 16},    // RFC 1918
                                                       {0xA9FE0000, 16},    // link-local
                                                       {0x64400000, 10},    // CGNAT
                                                       {0xC6120000, 15},    // benchmarks
                                                       {0xC0000200, 24},    // documentation
                                                       {0xC6336400, 24},    // documentation
                                                       {0xCB007100, 24}}};  // documentation
  const std::uint32_t v4 = plain.to_v4().to_uint();
  return std::any_of(kPrivate.begin(), kPrivate.end(), [v4](const Network& network) {
    return (v4 ^ network.first) >> (32 - network.bits) == 0;
  });
}

std::uint64_t network_of(const asio::ip::address& address) {
  const asio::ip::address plain = unmapped(address);
  if (plain.is_loopback()) return 0;
  if (plain.is_v4()) return std::uint64_t{1} << 48 | plain.to_v4().to_uint() >> 8;
  std::uint64_t network = 2;
  const auto bytes = plain.to_v6().to_bytes();
  for (std::size_t i = 0; i < 6; ++i) network = network << 8 | bytes[i];
  return network;
}

std::vector<std::byte> to_bytes(const asio::ip::address& address) {
  const auto copy = [](const auto& raw) {
    std::vector<std::byte> bytes(raw.size());
    std::memcpy(bytes.data(), raw.data(), raw.size());
    return bytes;
  };
  return address.is_v4() ? copy(address.to_v4().to_bytes()) : copy(address.to_v6().to_bytes());
}

std::optional<asio::ip::address> address_from_bytes(ByteSpan bytes) {
  asio::ip::address_v4::bytes_type v4{};
  asio::ip::address_v6::bytes_type v6{};
  if (bytes.size() == v4.size()) {
    std::memcpy(v4.data(), bytes.data(), v4.size());
    return asio::ip::address_v4(v4);
  }
  if (bytes.size() == v6.size()) {
    std::memcpy(v6.data(), bytes.data(), v6.size());
    return asio::ip::address_v6(v6);
  }
  return std::nullopt;
}

std::optional<asio::ip::address> plain_address(ByteSpan bytes) {
  const auto address = address_from_bytes(bytes);
  return address ? std::optional(unmapped(*address)) : std::nullopt;
}

std::string to_text(const HostPort& where) {
  const bool v6 = where.host.find(':') != std::string::npos;
  std::string text = v6 ? "[" : "";
  text += where.host;
  text += v6 ? "]:" : ":";
  return text += std::to_string(where.port);
}

std::string to_text(const asio::ip::tcp::endpoint& endpoint) {
  return to_text(HostPort{unmapped(endpoint.address()).to_string(), endpoint.port()});
}

}  // namespace leeway::rendezvous
