// The contents of an acknowledgement: at most what the 40 bytes of TCP options can hold beside
// timestamps. It counts segments instead of bytes.
#pragma once

#include <array>
#include <cstdint>

namespace leeway::sim {

// The segments begin .. end - 1 have arrived. The block is empty if begin equals end.
struct SackBlock {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  friend bool operator==(const SackBlock&, const SackBlock&) = default;
};

struct TcpAck {
  std::uint64_t next = 0;  // all segments before this one arrived
  // blocks beyond `next`, the latest change first (RFC 2018)
  std::array<SackBlock, 3> sacked{};
  bool duplicate = false;   // caused by a segment that had been there (RFC 2883)
  bool congestion = false;  // echo of a mark (RFC 3168)
};

}  // namespace leeway::sim
