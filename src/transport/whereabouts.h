// What a transport adds whose peers have network addresses that may change. Whoever proves where
// they are (transport/sealed) uses it.
#pragma once

#include "base/network_address.h"
#include "leeway/transport.h"

namespace leeway::transport {

// What the system refused to send: trains, or datagrams where these leave one by one.
struct SendRefusals {
  Rank to = kNoRank;
  std::uint64_t count = 0;
  int error = 0;  // errno of the latest
};

class Whereabouts {
 public:
  Whereabouts() = default;
  Whereabouts(const Whereabouts&) = delete;
  Whereabouts& operator=(const Whereabouts&) = delete;
  virtual ~Whereabouts() = default;

  // From now on receive() shows datagrams of unknown addresses as well, as those of kNoRank.
  virtual void show_strangers() = 0;
  // Where trains to the peer go, who is known.
  virtual NetworkAddress address_of(Rank peer) const = 0;
  // Where a datagram of the latest receive() came from.
  virtual NetworkAddress source_of(const Received& received) const = 0;
  // Trains to the peer go there from now on. False: no socket for such addresses.
  virtual bool move(Rank peer, const NetworkAddress& to) = 0;
  // One datagram, at once or never. Whether the system took it.
  virtual bool send_to(const NetworkAddress& to, ByteSpan datagram) = 0;
  // Of one peer. The count is 0 where nothing was refused, or nobody counts, as here.
  virtual SendRefusals refusals_to(Rank peer) const { return {.to = peer}; }
  // Of the peer that was refused something last.
  virtual SendRefusals last_refusals() const { return {}; }
  // From where the latest datagram of an unknown address came. Unknown: none came.
  virtual NetworkAddress last_stranger() const { return {}; }
};

}  // namespace leeway::transport
