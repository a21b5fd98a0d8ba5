// A TCP connection that carries bytes one way: both ends and the packets between them.
//
// Bytes are counted and have no contents. A simulated packet carries one word. In a data packet,
// the word holds the numbers of flow and segment. In an acknowledgement, it is the number of a
// record. The receiving end writes the acknowledgement's contents to the record, and the sending
// end reads them on arrival. Only the last few thousand records are kept, so an acknowledgement
// that thousands of later ones overtake counts as lost.
//
// A connection is established from the start and never closed. Memory does not grow in a steady
// state.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "network/packet.h"
#include "tcp/lazy_timer.h"
#include "tcp/tcp_options.h"
#include "tcp/tcp_receiver.h"
#include "tcp/tcp_sender.h"

namespace leeway::sim {

enum class TcpEnd : std::uint8_t { sender = 0, receiver = 1 };

// What a flow needs from its owner: network, clock, and a reader of its bytes.
class TcpHost {
 public:
  virtual ~TcpHost() = default;
  virtual void send_packet(Instant now, const Packet& packet) = 0;
  // Asks the host to call the flow's on_wake() for this end at `at`.
  virtual void wake_at(Instant at, std::uint32_t flow, TcpEnd end) = 0;
  // Returns the time at which the rank's own link has room for packets, or `now` if it has room. A
  // socket makes its writer wait instead of dropping packets there (Linux: TCP small queues).
  virtual Instant line_free_at(Instant now, std::uint32_t /*rank*/) { return now; }
  // The flow calls it when `bytes` more bytes have arrived in order.
  virtual void on_delivered(Instant now, std::uint32_t flow, std::uint64_t bytes) = 0;
};

struct TcpFlowCounters {
  std::uint64_t bytes_sent = 0;  // by the sender, TCP headers included, IP headers not
  std::uint64_t bytes_delivered = 0;
  std::uint64_t acks = 0;
  std::uint64_t repaired = 0;  // segments that arrived only by being repeated
};

class TcpFlow {
 public:
  struct Place {
    std::uint32_t flow = 0;  // below 2^24; in every packet
    std::uint32_t from = 0;  // ranks, different
    std::uint32_t to = 0;
    Traffic data = Traffic::data;
    Traffic acks = Traffic::control;
  };

  // Bytes to send() for a flow that never ends.
  static constexpr std::uint64_t kEndless = std::uint64_t{1} << 62;

  TcpFlow(const Place& place, const TcpOptions& options, TcpHost& host);

  static std::uint32_t flow_of(const Packet& packet) {
    return static_cast<std::uint32_t>(packet.word >> kFlowShift);
  }

  // Makes the word for a packet that is not of a TcpFlow, so that flow_of() returns `number` for
  // it.
  static std::uint64_t flow_word(std::uint32_t number) {
    return std::uint64_t{number} << kFlowShift;
  }

  void send(Instant now, std::uint64_t bytes);
  // Call it when a packet of this flow has arrived. Damaged and trimmed packets are dropped.
  void on_packet(Instant now, const Packet& packet);
  void on_wake(Instant now, TcpEnd end);

  const Place& place() const { return place_; }
  const TcpSender& sender() const { return sender_; }
  const TcpFlowCounters& counters() const { return counters_; }

 private:
  static constexpr int kFlowShift = 40;
  static constexpr std::uint64_t kRepeated = std::uint64_t{1} << 39;
  static constexpr std::uint64_t kReduced = std::uint64_t{1} << 38;
  static constexpr std::uint64_t kNumberMask = kReduced - 1;
  static constexpr std::uint32_t kIpHeaderBytes = 20;
  static constexpr std::size_t kRecordsMin = 64;

  struct Record {
    std::uint64_t number = UINT64_MAX;
    TcpAck ack;
  };

  void pump(Instant now);
  void transmit(Instant now, const TcpSegment& segment);
  void acknowledge_if_due(Instant now);
  void on_segment(Instant now, const Packet& packet);
  void on_ack(Instant now, std::uint64_t number);
  void make_room_for_records();
  std::uint64_t word(std::uint64_t rest) const { return flow_word(place_.flow) | rest; }

  Place place_;
  TcpOptions options_;
  TcpHost& host_;
  TcpSender sender_;
  TcpReceiver receiver_;
  LazyTimer sender_timer_;
  LazyTimer receiver_timer_;
  std::vector<Record> records_;  // by number, modulo the size, a power of two
  std::uint64_t acks_ = 0;
  TcpFlowCounters counters_;
};

}  // namespace leeway::sim
