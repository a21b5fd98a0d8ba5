// Decides from the rendezvous which peers may share memory with this process, and names their
// segments. transport/mixed finds out whether they really share it.
#pragma once

#include <memory>
#include <span>

#include "leeway/options.h"
#include "rendezvous/group.h"
#include "transport/mixed/mixed_transport.h"

namespace leeway::internal {

// Returns true if the options allow memory beside UDP. With injected faults memory must be asked
// for by name, because faults stand for those of a network.
bool may_share_memory(const Options& options);

// Returns the description of a new endpoint for other ranks. It shares no memory if this host has
// no shared memory.
rendezvous::MemoryPlace new_memory_place();
// Returns why new_memory_place() would share no memory; ok if it would.
Status check_memory();

// Adds memory beside `wide`, for peers that are met from now on. `mixed` points to the result. If
// the process has no room for memory, the result is `wide`, and `mixed` is null.
std::unique_ptr<DatagramTransport> with_memory(std::unique_ptr<DatagramTransport> wide,
                                               transport::MixedTransport*& mixed);

// Returns true if all ranks are said to be of one host and one user.
bool all_may_share(const rendezvous::Group& group);

// Meets the other ranks; `slots`: by rank. Processes that are known already keep their transport.
void meet_by_memory(const rendezvous::Group& group, Rank self, std::span<const Rank> slots,
                    transport::MixedTransport& mixed);

}  // namespace leeway::internal
