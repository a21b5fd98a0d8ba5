#include "seal/packet.h"

#include "base/contracts.h"
#include "seal/little_endian.h"

namespace leeway::seal {
namespace {

// First byte (WIRE 8.1): the version in the high half; class (path message or not) and phase in the
// low half.
constexpr unsigned kVersionForm = 0x50;
constexpr unsigned kPhaseBits = kPhases - 1;
constexpr unsigned kPathMessageBit = 4;

}  // namespace

void encode_header(const Header& header, MutableByteSpan out) {
  LEEWAY_ASSERT(out.size() >= kHeaderBytes);
  out[0] = static_cast<std::byte>(kVersionForm | (header.path_message ? kPathMessageBit : 0) |
                                  (header.phase & kPhaseBits));
  out[1] = static_cast<std::byte>(header.lane);
  out[2] = out[3] = std::byte{0};
  put(header.tag, out.subspan(4, 4));
  put(header.counter, out.subspan(8, 8));
}

Refusal decode_header(ByteSpan datagram, Header& out) {
  if (datagram.size() <= kOverheadBytes) return Refusal::truncated;
  const auto form = std::to_integer<unsigned>(datagram[0]);
  if ((form & ~(kPathMessageBit | kPhaseBits)) != kVersionForm) return Refusal::form;
  out = {.path_message = (form & kPathMessageBit) != 0,
         .phase = static_cast<std::uint8_t>(form & kPhaseBits),
         .lane = std::to_integer<std::uint8_t>(datagram[1]),
         .tag = take<std::uint32_t>(datagram.subspan(4, 4)),
         .counter = take<std::uint64_t>(datagram.subspan(8, 8))};
  return Refusal::none;
}

}  // namespace leeway::seal
