#include "rendezvous/metrics_address.h"

#include <algorithm>
#include <asio/ip/address.hpp>
#include <system_error>

namespace leeway::rendezvous {
namespace {

constexpr std::string_view kPublic = "public:";
constexpr int kPortMax = 65535;

}  // namespace

Result<MetricsAddress> parse_metrics_address(std::string_view text) {
  MetricsAddress address;
  const std::string whole(text.substr(0, 80));
  if (text.substr(0, kPublic.size()) == kPublic) {
    address.asked_public = true;
    text.remove_prefix(kPublic.size());
  }
  const auto where = parse_listen_address(text);
  if (!where.ok()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "\"%s\" is not host:port or public:host:port with a port of 0 to 65535",
                         whole.c_str());
  }
  address.where = *where;
  if (address.where.host == "localhost") address.where.host = "127.0.0.1";
  std::error_code error;
  const auto parsed = asio::ip::make_address(address.where.host, error);
  if (error) {
    return Status::error(StatusCode::kInvalidArgument,
                         "\"%s\" names no address of this machine: use 127.0.0.1:%u, say",
                         whole.c_str(), static_cast<unsigned>(address.where.port));
  }
  if (!address.asked_public && (parsed.is_unspecified() || !is_private(parsed))) {
    return Status::error(StatusCode::kInvalidArgument,
                         "\"%s\" may be reached by strangers, and whoever reaches it may read: use "
                         "127.0.0.1, a private address, or public:%s",
                         whole.c_str(), whole.c_str());
  }
  return address;
}

Result<MetricsAddress> shifted(MetricsAddress address, int place) {
  if (address.where.port == 0) return address;
  const int port = address.where.port + place;
  if (port > kPortMax) {
    return Status::error(StatusCode::kInvalidArgument,
                         "port %u leaves no port for this host's process %d",
                         static_cast<unsigned>(address.where.port), place);
  }
  address.where.port = static_cast<std::uint16_t>(port);
  return address;
}

std::string to_text(const MetricsAddress& address) {
  return (address.asked_public ? std::string(kPublic) : std::string()) + to_text(address.where);
}

}  // namespace leeway::rendezvous
