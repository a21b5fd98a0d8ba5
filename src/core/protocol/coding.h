// How much a sender adds to a first pass against losses: parity (WIRE 2.10), from which a receiver
// computes lost packets instead of asking for them, or copies of flows that are too short for
// parity (WIRE 2.12). Both pay where they take less time than the round trips that they save.
#pragma once

#include <cstdint>

#include "base/limits.h"
#include "protocol/endpoint_state.h"

namespace leeway::protocol {

// Returns true if the flow may end with parity.
inline bool may_be_coded(const PhasePlan& plan, std::uint32_t packets) {
  return plan.coded && packets > limits::kEagerPackets;
}
// Returns true if the flow may leave in copies.
bool may_be_copied(const EndpointConfig& config, const PhasePlan& plan, FlowKind kind,
                   std::uint32_t packets);

// Returns the number of parities with which an operation of `size` ranks takes the least time.
std::uint32_t parities_for(Instant now, int size, const PhasePlan& plan, const SendFlow& flow,
                           const Path& path);
// Returns the number of copies of a flow for which may_be_copied() is true. The number is such that
// about one operation in twenty loses all copies of some packet (limits::kCopiesShortfall).
std::uint32_t copies_for(int size, const SendFlow& flow, const Path& path);

}  // namespace leeway::protocol
