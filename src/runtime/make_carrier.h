// A carrier over a transport that all ranks agreed on.
#pragma once

#include <memory>

#include "leeway/options.h"
#include "runtime/bootstrap.h"
#include "runtime/carrier.h"

namespace leeway::runtime {

// What may be in flight to a peer whose system queues `receive_buffer_bytes` for all its senders
// together.
std::size_t window_to(const Options& options, std::size_t receive_buffer_bytes, int size);

// Of this rank in the group, for the datagrams of `lane`.
protocol::EndpointConfig endpoint_config(const Options& options, const Group& group,
                                         const Lane& lane);

// With the faults of the options, if any, between transport and carrier.
Result<std::unique_ptr<internal::Carrier>> make_carrier(
    const Options& options, TransportKind kind, protocol::EndpointConfig config,
    std::unique_ptr<DatagramTransport> transport);

}  // namespace leeway::runtime
