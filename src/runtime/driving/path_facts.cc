#include "driving/path_facts.h"

#include <cerrno>
#include <cstring>

namespace leeway::driving {
namespace {

std::string at(const NetworkAddress& address) {
  return address.known() ? " (" + to_text(address) + ")" : "";
}

std::string rank(Rank rank) {
  return "rank " + std::to_string(rank);
}

// The advice if neither addresses nor errors of the system are known.
const char* remedy_of(TransportKind kind) {
  switch (kind) {
    case TransportKind::verbs:
      return "check the fabric between the ports of LEEWAY_BIND (RoCE: UDP port 4791), or "
             "LEEWAY_TRANSPORT=udp";
    case TransportKind::ucx:
      return "check UCX between the hosts (UCX_NET_DEVICES, UCX_TLS), or LEEWAY_TRANSPORT=udp";
    case TransportKind::shm:
      return "check that all ranks make this call, and that they share /dev/shm";
    case TransportKind::custom:
      return "the transport that this program brings does not deliver, or wait() sleeps through it";
    default:
      return "";
  }
}

bool is_refused(const PathFacts& facts) {
  return facts.refused.count > 0 && facts.refused.error != EMSGSIZE;
}

// Returns true if the peer may be sending from an address that this process does not know. A sealed
// peer is recognised at any address, so its datagrams never count as a stranger's.
bool sends_from_elsewhere(const PathFacts& facts) {
  return !facts.heard && !facts.sealed && facts.from_strangers > 0;
}

std::string what_came(const PathFacts& facts) {
  const std::string there = at(facts.theirs);
  const std::string here = at(facts.own);
  const std::string sent = std::to_string(facts.sent);
  if (facts.heard) {
    const std::string arrived = facts.arrived == 0 ? "none" : std::to_string(facts.arrived);
    return "of " + sent + " datagrams from here" + here + " " + arrived + " arrived there" + there +
           ", and " + std::to_string(facts.came) + " came from there";
  }
  if (sends_from_elsewhere(facts)) {
    return "nothing came from there" + there + " to here" + here + ", but " +
           std::to_string(facts.from_strangers) + " datagrams from " + to_text(facts.stranger) +
           ", which is no rank's";
  }
  if (facts.came > 0) {
    return rank(facts.peer) + " has not come to this call, though " + std::to_string(facts.came) +
           " datagrams of its process came from there" + there;
  }
  return "no datagram came from there" + there + ", and " + sent + " went there from here" + here;
}

std::string remedy(const PathFacts& facts) {
  const std::string own = rank(facts.self);
  const std::string peer = rank(facts.peer);
  if (const char* const by_kind = remedy_of(facts.kind); *by_kind != '\0') return by_kind;
  if (sends_from_elsewhere(facts)) {
    return peer +
           " is behind a NAT (a secret helps: leeway keygen), or sends by another interface "
           "(LEEWAY_BIND)";
  }
  if (!facts.heard && facts.came > 0) return "do all ranks make this call?";
  if (is_refused(facts) && facts.refused.error == EPERM)
    return "a firewall of this host forbids UDP from " + own + " to " + peer;
  if (is_refused(facts)) {
    return "no way leads there from here: set LEEWAY_BIND on " + peer + ", or a route";
  }
  if (facts.arrived > 0 && facts.gone) return peer + " has left: its own error says why";
  if (facts.arrived > 0) return "does " + peer + " still run, and does the path still hold?";
  if (facts.heard) {
    return "UDP is blocked one way, from " + own + " to " + peer +
           ": see firewalls, routes, and LEEWAY_BIND on " + peer;
  }
  return "UDP is blocked from " + peer + " to " + own +
         ", or both ways: see firewalls, routes, and LEEWAY_BIND on both";
}

}  // namespace

std::string text_of(const PathFacts& facts) {
  std::string text = what_came(facts);
  if (is_refused(facts) && !sends_from_elsewhere(facts)) {
    text += "; the system refused " + std::to_string(facts.refused.count) + ": " +
            std::strerror(facts.refused.error) + " (errno " + std::to_string(facts.refused.error) +
            ")";
  }
  return text + "; " + remedy(facts);
}

}  // namespace leeway::driving
