#include "trace/datagram_text.h"

#include <cstdarg>
#include <cstdio>

#include "seal/packet.h"
#include "wire/packet.h"

namespace leeway::sim::trace {
namespace {

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
  char line[160];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  return line;
}

const char* name_of(wire::FlowKind kind) {
  switch (kind) {
    case wire::FlowKind::reduce:
      return "reduce";
    case wire::FlowKind::spread:
      return "spread";
    case wire::FlowKind::point:
      return "point";
  }
  return "?";
}

std::string data_text(ByteSpan datagram) {
  wire::DataHeader header;
  ByteSpan payload;
  if (wire::decode_data(datagram, header, payload) != wire::Refusal::none) return "data, damaged";
  std::string said = text("data round %u %s packet %u of %u", header.round, name_of(header.kind),
                          header.index.value, header.flow_packets);
  if (header.kind != wire::FlowKind::point && header.position.value != header.index.value)
    said += text(", sent as no. %u", header.position.value);
  if (header.attempt > 0) said += text(", answer to request %u", header.attempt);
  return said;
}

std::string end_text(ByteSpan datagram) {
  wire::End end;
  if (wire::decode_end(datagram, end) != wire::Refusal::none) return "end, damaged";
  return text("end round %u %s pass %u of %u packets", end.round, name_of(end.kind), end.attempt,
              end.flow_packets);
}

// Decodes only the header, because the trace may lack the bitmap after it.
std::string repair_text(ByteSpan datagram) {
  wire::Repair repair;
  ByteSpan words;
  const wire::Refusal refusal = wire::decode_repair(datagram, repair, words);
  if (refusal == wire::Refusal::field || datagram.size() < wire::kRepairFixedBytes) {
    return "repair, damaged";
  }
  return text("repair round %u %s request %u from packet %u, %u words", repair.round,
              name_of(repair.kind), repair.attempt, repair.base, repair.words);
}

}  // namespace

std::string datagram_text(ByteSpan first_bytes) {
  seal::Header sealed;
  if (seal::decode_header(first_bytes, sealed) == seal::Refusal::none)
    return text("sealed no. %llu", static_cast<unsigned long long>(sealed.counter));
  wire::Prefix prefix;
  if (wire::peek_prefix(first_bytes, prefix) != wire::Refusal::none) return "not Leeway's";
  switch (prefix.type) {
    case wire::PacketType::data:
      return data_text(first_bytes);
    case wire::PacketType::end:
      return end_text(first_bytes);
    case wire::PacketType::repair:
      return repair_text(first_bytes);
    case wire::PacketType::report:
      return text("report no. %u", prefix.sequence);
    case wire::PacketType::probe:
      return text("probe no. %u", prefix.sequence);
    case wire::PacketType::goodbye:
      return text("goodbye no. %u", prefix.sequence);
    case wire::PacketType::given_up:
      return text("given up no. %u", prefix.sequence);
    case wire::PacketType::alive:
      return text("alive, answers no. %u", prefix.sequence);
    case wire::PacketType::size:
      return text("size, probe %u", prefix.sequence);
    case wire::PacketType::piece:
      return text("piece of no. %u", prefix.sequence);
  }
  return "not Leeway's";
}

}  // namespace leeway::sim::trace
