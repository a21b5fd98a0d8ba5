#include "impairment/packet_address.h"

#include "wire/packet.h"

namespace leeway::impairment {

bool read_address(ByteSpan datagram, Rank receiver, PacketAddress& address) {
  wire::Prefix prefix;
  if (wire::peek_prefix(datagram, prefix) != wire::Refusal::none) return false;
  address.source = prefix.source;
  address.destination = prefix.destination == kEveryRank ? receiver : prefix.destination;
  address.control = prefix.type != wire::PacketType::data;
  address.type = static_cast<std::uint8_t>(prefix.type);
  address.sequence = prefix.sequence;
  address.payload_summed = prefix.payload_summed;
  if (address.control) return true;
  wire::DataHeader header;
  ByteSpan payload;
  if (wire::decode_data(datagram, header, payload) != wire::Refusal::none) return false;
  address.round = header.round;
  address.phase = static_cast<std::uint8_t>(header.kind);
  address.attempt = header.attempt;
  address.index = header.index;
  address.position = header.position;
  return true;
}

}  // namespace leeway::impairment
