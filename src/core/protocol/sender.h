// Sends data: first passes, to one receiver or by multicast, and answers to repair requests. Each
// train (GSO batch) has one destination, and destinations are served in rotation.
#pragma once

#include "protocol/control_writer.h"
#include "protocol/packet_order.h"
#include "protocol/progress.h"

namespace leeway::protocol {

class Sender {
 public:
  Sender(EndpointState& state, const PacketOrder& order, ControlWriter& control, Progress& progress)
      : state_(state), order_(order), control_(control), progress_(progress) {}

  // Writes a train of data. Returns false if none may leave.
  bool poll(Instant now, TrainBuffer& out);
  // Call it when more packets of the phase may be available.
  void release(Round& round, FlowKind kind);
  void on_repair(Instant now, Rank from, const wire::Repair& repair, ByteSpan words);
  // Repeats the END of an open flow when that is due.
  void wake(Instant now, Round& round, FlowKind kind, Rank peer);
  // Takes members that hold the other members up out of the multicast pass. Their flows go on by
  // unicast from the position of the pass.
  void wake_group(Instant now, Round& round, FlowKind kind);

  // Returns the share of the peers that have opened the oldest collective for which data is to be
  // sent. Returns 1 if no data is to be sent, and never 0. The pacer lowers the rate while the
  // share is below 1, or all ranks would send at once to the few peers that have opened it.
  double ready_share() const;
  // Reason why this rank's flows with the peer wait, for diagnostics.
  enum class Hold : std::uint8_t {
    nothing,  // no flow is open
    gate,     // data is ready, but the peer has not opened the operation
    credit,   // data is ready, but the credit is used up
    relay,    // data is ready, but the relay on the way has no room for it yet
    turn,     // data is ready and may leave
    answer,   // all data has left, or none is ready yet: waits for the peer's data or report
  };
  Hold hold(Rank peer) const;

 private:
  struct Place {
    PacketIndex index;
    PacketPosition position;
    PacketIndex ahead;          // as in RoundClient::payload()
    std::uint16_t attempt = 0;  // number of the request that it answers
  };

  bool fill_from_link(Instant now, Rank peer, TrainBuffer& out);
  bool fill_from_flow(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out);
  bool fill_from_group(Instant now, TrainBuffer& out);
  bool fill_from_pass(Instant now, Round& round, FlowKind kind, TrainBuffer& out);
  std::uint32_t eager_credit(const SendFlow& flow, Rank peer) const;
  void begin_copy(Round& round, FlowKind kind, Rank peer);
  void append_data(Instant now, Rank to, Round& round, FlowKind kind, Rank receiver,
                   const Place& place, TrainBuffer& out);
  void append_parity(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out);
  wire::DataHeader header_in(const Round& round, FlowKind kind, const SendFlow& flow) const;
  void write_data(Instant now, Rank to, Round& round, const wire::DataHeader& header,
                  const Payload& payload, MutableByteSpan scratch, TrainBuffer& out);
  void note_sent(Round& round, FlowKind kind, Rank peer, std::uint32_t packets);
  void end_pass(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out);
  void ask_gated(Instant now, Round& round, FlowKind kind, Rank peer);

  EndpointState& state_;
  const PacketOrder& order_;
  ControlWriter& control_;
  Progress& progress_;
};

}  // namespace leeway::protocol
