// Which peers may share memory with this process, by what the rendezvous told, and how their
// segments are called. Whether they do is found out by transport/mixed.
#pragma once

#include <memory>
#include <span>

#include "leeway/options.h"
#include "rendezvous/bootstrap.h"
#include "transport/mixed/mixed_transport.h"

namespace leeway::internal {

// Whether the options allow memory beside UDP. Not where faults are injected unless it is asked for
// by name: they stand for a network's.
bool may_share_memory(const Options& options);

// What others are told of a new endpoint. It shares none where this host has no shared memory.
rendezvous::MemoryPlace new_memory_place();
// Why it would share none; ok where it does.
Status check_memory();

// Memory beside `wide`, for peers that are met from now on. `mixed`: the result as what it is; null
// where the process has no room for it, and the result is `wide`.
std::unique_ptr<DatagramTransport> with_memory(std::unique_ptr<DatagramTransport> wide,
                                               transport::MixedTransport*& mixed);

// Whether all ranks are said to be of one host and one user.
bool all_may_share(const rendezvous::Group& group);

// This rank meets the others; `slots`: by rank. Processes that it knows keep their way.
void meet_by_memory(const rendezvous::Group& group, Rank self, std::span<const Rank> slots,
                    transport::MixedTransport& mixed);

}  // namespace leeway::internal
