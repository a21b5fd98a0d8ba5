// Decides from the rendezvous which peers may share memory with this process, and names their
// segments. transport/mixed finds out whether they really share it.
#pragma once

#include <memory>
#include <span>

#include "leeway/options.h"
#include "rendezvous/group.h"
#include "transport/mixed/mixed_transport.h"

namespace leeway::internal {

// Returns true if the options allow memory beside UDP. Injected faults imitate those of a network,
// so with faults memory must be asked for by name.
bool may_share_memory(const Options& options);

// Returns how other ranks of this host find a new endpoint's shared memory. If the host has no
// shared memory, the endpoint shares none.
rendezvous::MemoryPlace new_memory_place();
// Returns why new_memory_place() would share no memory; ok if it would.
Status check_memory();

// Returns a transport that reaches peers met from now on through memory where they share it, and
// all other peers through `wide`. `mixed` points to the result. Without room for memory the result
// is `wide`, and `mixed` is null.
std::unique_ptr<DatagramTransport> with_memory(std::unique_ptr<DatagramTransport> wide,
                                               transport::MixedTransport*& mixed);

// Returns true if all ranks run on one host under one user, as far as they said.
bool all_may_share(const rendezvous::Group& group);

// Tells `mixed` of the other ranks and of their `slots`, by rank. Processes that are known already
// keep their transport.
void meet_by_memory(const rendezvous::Group& group, Rank self, std::span<const Rank> slots,
                    transport::MixedTransport& mixed);

}  // namespace leeway::internal
