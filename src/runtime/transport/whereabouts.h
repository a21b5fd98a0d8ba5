// A transport's interface for peers whose addresses may change. The code that proves where peers
// are (transport/sealed) uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/network_address.h"
#include "leeway/transport.h"

namespace leeway::transport {

// The operating system's refusals to send to one peer. A refused train counts once; if it was sent
// datagram by datagram, each refused datagram counts.
struct SendRefusals {
  Rank to = kNoRank;
  std::uint64_t count = 0;
  int error = 0;  // errno of the latest refusal
  // Destination of the latest refused datagram: the peer's address at that time.
  NetworkAddress at;
};

// A datagram that the operating system refused to send because it was too long (EMSGSIZE).
struct LengthRefusal {
  Rank to = kNoRank;
  std::size_t bytes = 0;  // its length
};

class Whereabouts {
 public:
  Whereabouts() = default;
  Whereabouts(const Whereabouts&) = delete;
  Whereabouts& operator=(const Whereabouts&) = delete;
  virtual ~Whereabouts() = default;

  // From now on receive() also returns datagrams from unknown addresses, with kNoRank as their
  // sender.
  virtual void show_strangers() = 0;
  // Returns the address to which trains to the peer go. The peer must be known.
  virtual NetworkAddress address_of(Rank peer) const = 0;
  // Returns the address that a datagram of the latest receive() came from.
  virtual NetworkAddress source_of(const Received& received) const = 0;
  // Sets the address to which trains to the peer go from now on. Returns false if there is no
  // socket for such addresses.
  virtual bool move(Rank peer, const NetworkAddress& to) = 0;
  // Sends one datagram now, or not at all. Returns true if the system took it.
  virtual bool send_to(const NetworkAddress& to, ByteSpan datagram) = 0;
  // Returns the system's refusals to send to one peer. The count is 0 if there were none, or if the
  // transport does not count them.
  virtual SendRefusals refusals_to(Rank peer) const { return {.to = peer}; }
  // Returns the refusals to send to one peer: the one to which the system refused to send last.
  virtual SendRefusals last_refusals() const { return {}; }
  // Returns and forgets the latest refusal of one peer's datagram because of its length. Returns
  // nullopt if no peer has such a refusal.
  virtual std::optional<LengthRefusal> take_refusal() { return std::nullopt; }
  // Returns the source address of the latest datagram that came from no member. The address is not
  // known() if none came.
  virtual NetworkAddress last_stranger() const { return {}; }
};

}  // namespace leeway::transport
