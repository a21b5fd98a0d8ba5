// Addresses of the processes in the simulated network, and the address translators (NAT) before
// them.
//
// The network itself carries packets by process number. An address consists of a host, which
// belongs to one process, and one of its ports. A packet is admitted if the process still has the
// packet's address when it arrives.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/network_address.h"
#include "base/time.h"
#include "seal/packet.h"
#include "seal/path_message.h"

namespace leeway::sim {

class Addresses {
 public:
  // Length of a sealed challenge.
  static constexpr std::size_t kChallengeBytes = seal::kPathMessageBytesMax + seal::kOverheadBytes;

  explicit Addresses(std::uint32_t processes);

  // Puts an address translator (NAT) before the process. The translator gives the process another
  // port once nothing left through the old one for `idle`. `symmetric`: it uses one port per
  // destination address, and lets in only datagrams from that address.
  void translate(std::uint32_t process, Duration idle, bool symmetric);
  // move() gives the process another host address; rebind() makes its translator take another port.
  void move(std::uint32_t process);
  void rebind(std::uint32_t process);

  // Returns the address of `process` that other processes know at first.
  NetworkAddress told(std::uint32_t process) const;

  // Call it when a datagram leaves the process for `to`. Returns the source address that the
  // receiver sees.
  NetworkAddress outbound(Instant now, std::uint32_t process, const NetworkAddress& to);
  // Returns true if a datagram that `source` sent to the address `to` still reaches the process.
  bool admits(Instant now, std::uint32_t process, const NetworkAddress& source,
              const NetworkAddress& to) const;

  // Packs two addresses into one word of a packet, and unpacks them.
  static std::uint64_t pack(const NetworkAddress& source, const NetworkAddress& to);
  static NetworkAddress source_of(std::uint64_t word) { return unpack(word >> 32); }
  static NetworkAddress target_of(std::uint64_t word) { return unpack(word & 0xFFFFFFFF); }

  // ---- bytes that may go to an address (I11) ----

  void on_sent(std::uint32_t from, const NetworkAddress& to, std::size_t bytes, bool path_message);
  void on_received(std::uint32_t by, const NetworkAddress& source, std::size_t bytes, bool answer);
  // Call it when a peer told the process the address of a third process. The process may then send
  // 8 challenges to it (WIRE 9.7).
  void on_told(std::uint32_t process, const NetworkAddress& address) {
    account(process, address).allowed += 8 * kChallengeBytes;
  }
  // Number of datagrams that broke I11. I11 forbids datagrams of the core to an address that has
  // never answered. It also limits the bytes of path messages to such an address: three times the
  // bytes that came from there, and more after on_told().
  std::uint64_t overdrawn() const { return overdrawn_; }

 private:
  // A port from which a process's datagrams come, and when a datagram last left through it.
  struct Port {
    std::uint16_t number = 0;
    Instant used;
  };
  struct Place {
    std::uint16_t host = 0;
    Port port;
    Duration idle = Duration::max();
    bool symmetric = false;
    // Ports of a symmetric translator, by destination address.
    std::map<std::uint32_t, Port> ports;
  };
  // Bytes that a process has sent, and may send, to an address.
  struct Account {
    std::uint64_t sent = 0;
    std::uint64_t allowed = 0;
    bool proven = false;
  };

  static NetworkAddress unpack(std::uint64_t half);
  Account& account(std::uint32_t process, const NetworkAddress& address);
  std::uint16_t next_port() { return ++ports_; }

  std::vector<Place> places_;  // by process
  std::uint16_t hosts_ = 0;
  std::uint16_t ports_ = 7000;
  std::vector<std::map<std::uint32_t, Account>> accounts_;  // by process, then by address
  std::uint64_t overdrawn_ = 0;
};

}  // namespace leeway::sim
