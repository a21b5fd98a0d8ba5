// IP multicast: a second socket receives from the group, and the rank's own socket sends to it.
#pragma once

#include <asio/ip/udp.hpp>

#include "leeway/status.h"
#include "transport/udp/address.h"
#include "transport/udp/socket.h"

namespace leeway::transport {

// Limit on the routers that a multicast datagram may pass. It keeps the datagram within an
// organisation. Leeway's groups, in 239.192.0.0/14, go no further either (RFC 2365).
inline constexpr int kMulticastHops = 16;

// Opens `hearing` at the group's address and port, shared with other ranks of this host, and joins
// the group on the interface that carries `local`. Makes `sending` send to groups through that
// interface, also to ranks of this host. Returns kInvalidArgument if `group` is no multicast
// address of `local`'s family, and kUnavailable if the system refuses. Errors name the group and
// the address.
Result<UdpSocketGrant> join_multicast_group(asio::ip::udp::socket& hearing,
                                            asio::ip::udp::socket& sending, const UdpAddress& group,
                                            const asio::ip::address& local,
                                            const UdpSocketRequest& like);

}  // namespace leeway::transport
