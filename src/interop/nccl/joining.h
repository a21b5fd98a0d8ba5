// How ranks with a unique id become a communicator.
#pragma once

#include <memory>
#include <string>

#include "interop/nccl/comm.h"
#include "interop/nccl/unique_id.h"

namespace leeway::nccl {

// Begins to join the group of `id`. `comm` becomes ready, or fails, in the background. Returns an
// error if that cannot begin.
Status begin_joining(Comm& comm, const UniqueId& id, int ranks, int rank);
// Makes `ranks` communicators for threads of this process, without sockets. Their ranks have met.
// Only policies are still to be compared (Comm::begin).
Result<std::vector<std::unique_ptr<Communicator>>> create_in_process(int ranks);

// Describes for the log what carries the communicator's calls, from which interface, and whether
// they are sealed.
std::string way_of(const Communicator& communicator);

// Returns a new id, or the one that NCCL_COMM_ID names.
Result<UniqueId> make_unique_id();

// Makes communicators leave at the end of the process. Those that the program did not destroy have
// 200 ms, all together, to serve peers and to leave. Calls after the first do nothing.
void leave_at_exit();

}  // namespace leeway::nccl
