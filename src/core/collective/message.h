// A send or a recv: moves one block between two ranks in a round of the protocol. Any number of
// messages may be open; each needs about as much memory as its request.
#pragma once

#include <vector>

#include "collective/operation_plan.h"
#include "collective/request.h"
#include "collective/spread.h"
#include "protocol/endpoint.h"

namespace leeway::collective {

// Objects are reused, so that a message allocates no memory.
class Message final : public protocol::RoundClient {
 public:
  // When the message may be reused, it adds itself to `free`, which must have capacity for it.
  Message(protocol::Endpoint& endpoint, MemoryWatcher* watcher, std::vector<Message*>& free)
      : endpoint_(endpoint), free_(free), spread_(watcher) {}

  // The request must have been validated.
  void begin(Instant now, Request& request);

  // RoundClient
  schedule::PacketGrid outgoing(protocol::FlowKind kind, Rank peer) const override;
  schedule::PacketGrid incoming(protocol::FlowKind kind, Rank peer) const override;
  const Bitmap* required(protocol::FlowKind, Rank) const override { return nullptr; }
  protocol::Payload payload(protocol::FlowKind kind, Rank to, PacketIndex index, PacketIndex ahead,
                            MutableByteSpan scratch) override;
  protocol::Acceptance accept(Rank from, const wire::DataHeader& header, ByteSpan payload) override;
  void on_length(std::uint64_t elements) override;
  void on_settled(protocol::FlowKind, Instant) override {}
  void on_done(const Status& status, Instant now) override;
  void on_closed() override;

 private:
  protocol::Endpoint& endpoint_;
  std::vector<Message*>& free_;
  Request* request_ = nullptr;
  protocol::Round* round_ = nullptr;
  // Built by begin(). Only a receive changes the plan later, when it learns the length from the
  // sender.
  OperationPlan plan_;
  std::uint64_t length_ = 0;  // elements; 0 for a receive until it is heard
  Spread spread_;             // for a group of one: rank 0 is the block's source or destination
};

}  // namespace leeway::collective
