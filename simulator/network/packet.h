// A packet as the network sees it: sender, receiver, length. The network does not read the payload,
// which lies elsewhere (payload_pool.h). Endpoints that carry no data use only `word`.
#pragma once

#include <cstdint>

#include "leeway/types.h"

namespace leeway::sim {

// Kind of a packet: decides who receives it (Network::attach) and how it is counted.
enum class Traffic : std::uint8_t {
  data = 0,     // tensor data of the collective under study
  control = 1,  // everything else the endpoints say: reports, requests, acknowledgements
  cross = 2,    // other people's traffic
};
inline constexpr int kTrafficKinds = 3;

inline constexpr std::uint32_t kNoPayload = UINT32_MAX;

// IPv4 and UDP headers, which each datagram carries on every line. Rates, queues and the path MTU
// include them.
inline constexpr std::uint32_t kHeaderBytes = 28;

struct Packet {
  std::uint32_t from = 0;  // ranks
  std::uint32_t to = 0;
  std::uint32_t bytes = 0;             // on the line, headers included; at least 1
  std::uint32_t payload = kNoPayload;  // handle in the network's PayloadPool
  std::uint64_t word = 0;              // for the endpoint's own use
  // If `corrupt`: the bit of the payload to flip, modulo the payload's length.
  std::uint32_t corrupt_bit = 0;
  std::uint16_t hop = 0;  // number of links that it has passed
  Traffic traffic = Traffic::data;
  bool ecn_capable : 1 = false;
  bool marked : 1 = false;     // congestion experienced
  bool trimmed : 1 = false;    // cut to its header by a queue
  bool corrupt : 1 = false;    // one bit of the payload is wrong
  bool duplicate : 1 = false;  // a copy that a link made
  // The packet has several receivers, one of which is `to`. The network then uses `word` for
  // itself.
  bool shared : 1 = false;
};
static_assert(sizeof(Packet) <= 40);

}  // namespace leeway::sim
