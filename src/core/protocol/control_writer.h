// Writes control datagrams: repair requests, ENDs, reports, probes and good-byes. Other parts of
// the endpoint set flags in Link, SendFlow and ReceiveFlow, which say which datagrams are due.
#pragma once

#include "protocol/endpoint_state.h"
#include "protocol/failures.h"

namespace leeway::protocol {

class ControlWriter {
 public:
  // `failures`: collectives that failed here, which reports list.
  ControlWriter(EndpointState& state, const Failures& failures)
      : state_(state), failures_(failures) {}

  // Writes a train of control datagrams. Returns false if none is due.
  bool poll(Instant now, TrainBuffer& out);
  // Writes the END of the flow's pass.
  void write_end(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out);

 private:
  bool write(Instant now, Rank peer, TrainBuffer& out);
  void write_bare(Instant now, wire::PacketType type, Rank to, TrainBuffer& out);
  PeerMessages::Listed write_report(Instant now, Rank peer, TrainBuffer& out);
  bool write_repair_request(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out);
  bool write_last_report(Instant now, Rank peer, TrainBuffer& out);
  bool write_farewell(Instant now, Rank peer, TrainBuffer& out);
  int copies(Rank peer, std::uint32_t tries) const;

  EndpointState& state_;
  const Failures& failures_;
};

}  // namespace leeway::protocol
