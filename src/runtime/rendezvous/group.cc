#include "rendezvous/group.h"

#include <algorithm>
#include <cstdio>

#include "rendezvous/address.h"

namespace leeway::rendezvous {

std::string why_far(const Group& group) {
  constexpr Duration kWithinSite = std::chrono::milliseconds(2);
  const GroupTransport& transport = group.datagrams;
  if (transport.kind != TransportKind::udp) return "";
  if (group.round_trip > kWithinSite) {
    char text[64];
    std::snprintf(text, sizeof text, "the farthest rank is %.1f ms from rank 0",
                  std::chrono::duration<double, std::milli>(group.round_trip).count());
    return text;
  }
  for (std::size_t rank = 0; rank < transport.members.size(); ++rank) {
    const auto address = address_from_bytes(transport.members[rank].address);
    if (address && !is_private(*address))
      return "rank " + std::to_string(rank) + " has the public address " + address->to_string();
  }
  return "";
}

bool shares_host(const Group& group) {
  const GroupTransport& transport = group.datagrams;
  return transport.kind == TransportKind::udp &&
         std::all_of(transport.members.begin(), transport.members.end(),
                     [&](const GroupTransport::Member& member) {
                       return member.address == transport.members.front().address;
                     });
}

}  // namespace leeway::rendezvous
