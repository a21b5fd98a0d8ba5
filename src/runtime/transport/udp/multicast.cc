#include "transport/udp/multicast.h"

#include <net/if.h>

#include <asio/ip/multicast.hpp>

namespace leeway::transport {
namespace {

namespace multicast = asio::ip::multicast;

// Returns the index of the interface that carries an IPv6 address, or 0 (the system's choice) if
// there is none.
unsigned interface_of(const asio::ip::address_v6& local) {
  const auto name = interface_with(local);
  return name.ok() ? if_nametoindex(name->c_str()) : 0;
}

void join(asio::ip::udp::socket& hearing, const asio::ip::address& group,
          const asio::ip::address& local, std::error_code& error) {
  if (group.is_v4()) {
    hearing.set_option(multicast::join_group(group.to_v4(), local.to_v4()), error);
  } else {
    hearing.set_option(multicast::join_group(group.to_v6(), interface_of(local.to_v6())), error);
  }
}

void send_through(asio::ip::udp::socket& sending, const asio::ip::address& local,
                  std::error_code& error) {
  if (local.is_v4()) {
    sending.set_option(multicast::outbound_interface(local.to_v4()), error);
  } else {
    sending.set_option(multicast::outbound_interface(interface_of(local.to_v6())), error);
  }
  if (!error) sending.set_option(multicast::enable_loopback(true), error);
  if (!error) sending.set_option(multicast::hops(kMulticastHops), error);
}

}  // namespace

Result<UdpSocketGrant> join_multicast_group(asio::ip::udp::socket& hearing,
                                            asio::ip::udp::socket& sending, const UdpAddress& group,
                                            const asio::ip::address& local,
                                            const UdpSocketRequest& like) {
  if (!group.address().is_multicast() || group.address().is_v4() != local.is_v4()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "%s is no multicast group of the data address %s's family",
                         group.address().to_string().c_str(), local.to_string().c_str());
  }
  UdpSocketRequest request = like;
  request.local = group;
  request.shared = true;
  auto grant = open_udp_socket(hearing, request);
  if (!grant.ok()) return grant;
  std::error_code error;
  join(hearing, group.address(), local, error);
  if (!error) send_through(sending, local, error);
  if (!error) return grant;
  return Status::error(StatusCode::kUnavailable,
                       "multicast group %s port %u on the interface of %s: %s",
                       group.address().to_string().c_str(), unsigned{group.port()},
                       local.to_string().c_str(), error.message().c_str());
}

}  // namespace leeway::transport
