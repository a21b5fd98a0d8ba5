// A RoundClient for operations without packets.
#pragma once

#include "protocol/round_client.h"

namespace leeway::protocol {

class NoClient : public RoundClient {
 public:
  schedule::PacketGrid outgoing(FlowKind, Rank) const override { return {}; }
  schedule::PacketGrid incoming(FlowKind, Rank) const override { return {}; }
  const Bitmap* required(FlowKind, Rank) const override { return nullptr; }
  Payload payload(FlowKind, Rank, PacketIndex, PacketIndex, MutableByteSpan) override { return {}; }
  Acceptance accept(Rank, const wire::DataHeader&, ByteSpan) override {
    return Acceptance::refused;
  }
  void on_settled(FlowKind, Instant) override {}
  void on_done(const Status&, Instant) override {}
  void on_closed() override {}
};

}  // namespace leeway::protocol
