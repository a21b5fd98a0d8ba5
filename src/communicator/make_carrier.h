// A carrier over a transport that all ranks agreed on.
#pragma once

#include <memory>

#include "driving/carrier.h"
#include "leeway/options.h"
#include "rendezvous/bootstrap.h"

namespace leeway::internal {

// What may be in flight to a peer whose system queues `receive_buffer_bytes` for all its senders
// together.
std::size_t window_to(const Options& options, std::size_t receive_buffer_bytes, int size);

// Of this rank in the group, for the datagrams of `lane`.
protocol::EndpointConfig endpoint_config(const Options& options, const rendezvous::Group& group,
                                         const rendezvous::Lane& lane);

// With the faults of the options, if any, between transport and carrier.
Result<std::unique_ptr<driving::Carrier>> make_carrier(
    const Options& options, TransportKind kind, protocol::EndpointConfig config,
    std::unique_ptr<DatagramTransport> transport);

}  // namespace leeway::internal
