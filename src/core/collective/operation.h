// One collective: binds its reduce half and its spread half to a round of the protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/automatic_codec.h"
#include "collective/noise_meter.h"
#include "collective/operation_plan.h"
#include "collective/payload_exchange.h"
#include "collective/reduction.h"
#include "collective/request.h"
#include "collective/spread.h"
#include "leeway/report.h"
#include "protocol/endpoint.h"

namespace leeway::collective {

// Objects are reused, so that their memory is allocated once.
class Operation final : public protocol::RoundClient {
 public:
  Operation(protocol::Endpoint& endpoint, estimate::LinkHistory& history, AutomaticCodec& automatic,
            MemoryWatcher* watcher);

  // Begins the request, which must have been validated or be forfeited. Returns false if the
  // protocol has no room for another open round. `number`: as RoundPlan::number. `stand_in`: the
  // open round that this operation takes over, or null to open a new one.
  bool begin(Instant now, Request& request, std::optional<std::uint32_t> number = {},
             protocol::Round* stand_in = nullptr);
  // Returns true if this operation is a stand-in for the collective with this place.
  bool holds(std::uint64_t place) const;
  // Ends the stand-in, which this operation must be, and begins the request in its round.
  void take_over(Instant now, Request& request);
  bool performs(const Request& request) const { return request_ == &request; }
  // See Engine::end().
  void end(Instant now, const Status& status, const protocol::Blame& blame);
  bool free() const { return round_ == nullptr && request_ == nullptr; }

  // Returns true if the operation's elements are encoded and decoded by a payload source and sink.
  bool exchanges() const { return request_ != nullptr && request_->payload != nullptr; }
  // fail_at_source(): fails the operation. ask_payload(): asks source and sink which chunks are
  // ready.
  void fail_at_source(Instant now, const Status& why);
  void ask_payload(Instant now);
  Instant ask_payload_at() const { return ask_at_; }
  // Fails the operation if the network has done its part, but its payload source or sink has not.
  void cancel_payload(Instant now, const Status& status);

  // As protocol::RoundClient.
  schedule::PacketGrid outgoing(protocol::FlowKind kind, Rank peer) const override;
  schedule::PacketGrid incoming(protocol::FlowKind kind, Rank peer) const override;
  const Bitmap* required(protocol::FlowKind kind, Rank peer) const override;
  protocol::Payload payload(protocol::FlowKind kind, Rank to, PacketIndex index, PacketIndex ahead,
                            MutableByteSpan scratch) override;
  protocol::Acceptance accept(Rank from, const wire::DataHeader& header, ByteSpan payload) override;
  protocol::Payload parity(protocol::FlowKind kind, Rank to, wire::ParityPlace place,
                           MutableByteSpan scratch) override;
  bool hold_parity(protocol::FlowKind kind, Rank from, PacketIndex index,
                   ByteSpan payload) override;
  ByteSpan lift_parity(protocol::FlowKind kind, Rank from, PacketIndex index) override;
  bool recover(protocol::FlowKind kind, Rank from, const CodedPackets& code) override;
  void on_settled(protocol::FlowKind kind, Instant now) override;
  void on_done(const Status& status, Instant now) override;
  void on_closed() override;

 private:
  void release_reduced();
  void finish(Instant now, const Status& status);
  Instant payload_deadline() const;
  Status with_awaited_payload(const Status& status) const;
  std::string missing_of() const;
  Status incomplete() const;
  void fill_peer_reports();
  void learn_from_links();
  void report_noise();

  protocol::Endpoint& endpoint_;
  estimate::LinkHistory& history_;
  AutomaticCodec& automatic_;
  Request* request_ = nullptr;
  protocol::Round* round_ = nullptr;
  OperationPlan plan_;  // built by begin(), then only read
  NoiseMeter meter_;
  Reduction reduction_;
  Spread spread_;
  PayloadExchange payload_;
  bool outcome_known_ = false;       // on_done() was called with success
  std::uint32_t reduced_taken_ = 0;  // chunks of `reduced_` that were handed to the sink
  Instant ask_at_ = Instant::infinite_future();
  schedule::ChunkQueue reduced_;
  Instant submitted_{0};
  Instant reduce_settled_{0};
  std::byte barrier_bytes_[2] = {};
};

}  // namespace leeway::collective
