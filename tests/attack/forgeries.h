// Datagrams that would do harm if a receiver believed them. The forger knows the wire format, the
// epoch, and all numbers of rounds, flows and datagrams.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "attack/sealed_job.h"

namespace leeway::attack {

struct Forgery {
  std::string name;
  Bytes plain;
};

template <typename Encode>
Bytes encoded(const Encode& encode) {
  Bytes out(limits::kDatagramBytesMax);
  out.resize(encode(MutableByteSpan(out)));
  return out;
}

inline Bytes bare(wire::PacketType type, std::uint32_t epoch, Rank from, Rank to,
                  std::uint32_t sequence) {
  return encoded([&](MutableByteSpan out) {
    return wire::encode_bare({type, epoch, from, to, sequence}, out);
  });
}

inline Bytes data_of(const wire::Prefix& prefix, const wire::DataHeader& header,
                     std::size_t payload_bytes) {
  Bytes out(wire::kDataHeaderBytes + payload_bytes, std::byte{0x7F});
  wire::Prefix unsummed = prefix;
  unsummed.payload_summed = false;
  wire::encode_data(unsummed, header, 0, out);
  return out;
}

inline Bytes repair_of(const wire::Prefix& prefix, const wire::Repair& repair) {
  const std::vector<std::uint64_t> words(repair.words, UINT64_MAX);
  return encoded(
      [&](MutableByteSpan out) { return wire::encode_repair(prefix, repair, words, out); });
}

// Returns one datagram for each false claim. `round` is an operation open at the receiver.
inline std::vector<Forgery> forgeries(std::uint32_t epoch, Rank from, Rank to,
                                      std::uint32_t round) {
  using wire::PacketType;
  constexpr std::uint32_t kNext = 1000;       // a sequence number that may come next
  constexpr std::uint32_t kFar = 0x7FFFFFFE;  // the largest number that still counts as later
  const auto prefix = [&](PacketType type) { return wire::Prefix{type, epoch, from, to, kNext}; };
  wire::DataHeader data;
  data.round = round;
  data.flow_packets = 4;
  wire::DataHeader opens = data;
  opens.opened_below = kFar;
  wire::DataHeader settles = data;
  settles.settled_below = kFar;
  wire::DataHeader huge = data;
  huge.weight = 3e38f;
  wire::Report report;
  report.largest_sequence = 2;
  report.received = 2;
  wire::Report opened = report;
  opened.opened_below = kFar;
  opened.point_opened_below = kFar;
  opened.missed = (1u << wire::kMissedRounds) - 1;
  wire::Report claims = report;
  claims.largest_sequence = kFar;
  wire::Report goodbye = report;
  goodbye.heard_goodbye = true;
  const wire::End end{.round = round, .flow_packets = 4};
  const auto report_bytes = [&](const wire::Report& what) {
    return encoded([&](MutableByteSpan out) {
      return wire::encode_report(prefix(PacketType::report), what, out);
    });
  };
  wire::Prefix jump_prefix = prefix(PacketType::data);
  jump_prefix.sequence = kFar;
  wire::Prefix multicast = jump_prefix;
  multicast.destination = kEveryRank;
  return {
      {"good-bye", bare(PacketType::goodbye, epoch, from, to, kNext)},
      {"given up", bare(PacketType::given_up, epoch, from, to, kNext)},
      {"probe", bare(PacketType::probe, epoch, from, to, kNext)},
      {"alive", bare(PacketType::alive, epoch, from, to, 3)},
      {"sequence jump", data_of(jump_prefix, data, 8)},
      {"opened_below jump", data_of(prefix(PacketType::data), opens, 8)},
      {"settled_below jump", data_of(prefix(PacketType::data), settles, 8)},
      {"huge weight", data_of(prefix(PacketType::data), huge, 8)},
      {"multicast number", data_of(multicast, data, 8)},
      {"report that opened all", report_bytes(opened)},
      {"report of what was never sent", report_bytes(claims)},
      {"report of a good-bye", report_bytes(goodbye)},
      {"end", encoded([&](MutableByteSpan out) {
         return wire::encode_end(prefix(PacketType::end), end, out);
       })},
      {"repair", repair_of(prefix(PacketType::repair), {.round = round, .attempt = 1, .words = 8})},
  };
}

}  // namespace leeway::attack
