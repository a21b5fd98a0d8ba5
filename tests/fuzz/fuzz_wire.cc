// Decoders must handle all bytes: decode or refuse them, and never read out of bounds.
#include <cstddef>
#include <cstdint>

#include "impairment/packet_address.h"
#include "wire/packet.h"

using namespace leeway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan datagram(reinterpret_cast<const std::byte*>(data), size);
  const wire::Expectation expect{7, 1, 4};
  wire::Prefix prefix;
  (void)wire::decode_prefix(datagram, &expect, prefix);
  wire::DataHeader header;
  wire::Report report;
  wire::End end;
  wire::Repair repair;
  ByteSpan rest;
  // Decodes even with a wrong checksum, because these decoders must be safe without that check.
  (void)wire::decode_data(datagram, header, rest);
  (void)wire::decode_report(datagram, report);
  (void)wire::decode_end(datagram, end);
  (void)wire::decode_repair(datagram, repair, rest);
  wire::Size probed;
  wire::Piece piece;
  (void)wire::decode_size(datagram, probed);
  (void)wire::decode_piece(datagram, piece, rest);
  impairment::PacketAddress address;
  (void)impairment::read_address(datagram, 0, address);
  return 0;
}
