// A user's settings for the queue before a link of limited rate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "leeway/status.h"

namespace leeway::sim {

struct QueueOptions {
  std::uint64_t bits_per_second = 1'000'000'000;  // 1 to 10 Tb/s

  // Times at which the line can send delivery_bytes, repeated (trace_line.h). If the list is not
  // empty, it replaces the rate. It has at most kDeliveriesMax times, which are 0 or more and do
  // not fall, and the last is above 0. mahimahi sends 1504 bytes each time.
  std::vector<std::int64_t> deliveries_ns;
  std::uint32_t delivery_bytes = 1504;  // 1 or more

  // A packet that does not fit is dropped (droptail). A packet takes room until its last bit is
  // sent.
  std::uint64_t max_bytes = 1'000'000;  // 1 to kQueueBytesMax; at most what leaves in a day
  std::uint32_t max_packets = 65'536;   // 1 to kQueuePacketsMax

  // Trimming, as in NDP and Ultra Ethernet but without their priority for trimmed packets; 0 turns
  // it off. A packet that does not fit is cut to its first trim_bytes and keeps its place in line,
  // if it then fits into max_bytes + trim_room_bytes. Packets of up to trim_bytes may use this
  // extra room, too. Not together with CoDel.
  std::uint32_t trim_bytes = 0;
  std::uint64_t trim_room_bytes = 0;  // 0 to kQueueBytesMax

  // RED on the current length of the queue, as in data-centre switches (DCTCP, DCQCN). If the queue
  // has fewer than red_min_bytes, no packet is hit; from red_max_bytes on every packet is. In
  // between the probability rises linearly from 0 to red_probability. Equal minimum and maximum
  // give DCTCP's threshold. A maximum of 0 turns RED off. A hit packet is marked if it is
  // ECN-capable, else dropped.
  std::uint64_t red_min_bytes = 0;
  std::uint64_t red_max_bytes = 0;
  double red_probability = 1;

  // CoDel (RFC 8289), which judges packets at the head of the queue. A target of 0 turns it off.
  // The RFC recommends a target of 5 ms and an interval of 100 ms. ECN-capable packets are marked
  // instead of dropped. The target is at least the time that the line takes for codel_packet_bytes,
  // the usual length of a full packet; CoDel judges packets of any length.
  std::int64_t codel_target_ns = 0;
  std::int64_t codel_interval_ns = 100'000'000;
  std::uint32_t codel_packet_bytes = 1500;
};

// Limit on max_packets. A waiting packet takes 16 bytes of memory.
inline constexpr std::uint32_t kQueuePacketsMax = 1u << 20;
inline constexpr std::size_t kDeliveriesMax = std::size_t{1} << 24;
inline constexpr std::uint64_t kQueueBytesMax = std::uint64_t{1} << 40;

// The error names the parameter that is out of range, its value and its range.
Status check_queue(const QueueOptions& options);

}  // namespace leeway::sim
