#include "seal/packet.h"

#include "base/contracts.h"

namespace leeway::seal {
namespace {

// WIRE 8.1: the version in the high half; the class, which is 0, and the phase in the low one.
constexpr unsigned kVersionForm = 0x40;
constexpr unsigned kPhaseBits = kPhases - 1;

template <typename Unsigned>
void put(Unsigned value, MutableByteSpan out) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    out[i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
}

template <typename Unsigned>
Unsigned take(ByteSpan in) {
  Unsigned value = 0;
  for (std::size_t i = sizeof value; i-- > 0;)
    value = static_cast<Unsigned>(value << 8 | std::to_integer<Unsigned>(in[i]));
  return value;
}

}  // namespace

void encode_header(const Header& header, MutableByteSpan out) {
  LEEWAY_ASSERT(out.size() >= kHeaderBytes);
  out[0] = static_cast<std::byte>(kVersionForm | (header.phase & kPhaseBits));
  out[1] = static_cast<std::byte>(header.lane);
  put(header.view, out.subspan(2, 2));
  put(header.tag, out.subspan(4, 4));
  put(header.counter, out.subspan(8, 8));
}

std::optional<Header> decode_header(ByteSpan datagram, Refusal& refusal) {
  refusal = Refusal::truncated;
  if (datagram.size() <= kOverheadBytes) return std::nullopt;
  refusal = Refusal::form;
  const auto form = std::to_integer<unsigned>(datagram[0]);
  if ((form & ~kPhaseBits) != kVersionForm) return std::nullopt;
  refusal = Refusal::none;
  return Header{.phase = static_cast<std::uint8_t>(form & kPhaseBits),
                .lane = std::to_integer<std::uint8_t>(datagram[1]),
                .view = take<std::uint16_t>(datagram.subspan(2, 2)),
                .tag = take<std::uint32_t>(datagram.subspan(4, 4)),
                .counter = take<std::uint64_t>(datagram.subspan(8, 8))};
}

}  // namespace leeway::seal
