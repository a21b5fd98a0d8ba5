// How ranks with a unique id become a communicator.
#pragma once

#include <memory>
#include <string>

#include "interop/nccl/comm.h"
#include "interop/nccl/unique_id.h"

namespace leeway::nccl {

// Begins: `comm` becomes ready, or fails, in the background.
Status begin_joining(Comm& comm, const UniqueId& id, int ranks, int rank);
// `ranks` communicators of this process's threads, without sockets; ready at once but for the
// comparison of policies.
Result<std::vector<std::unique_ptr<Communicator>>> create_in_process(int ranks);

// What carries the communicator's calls, from which interface, and whether strangers can read them.
std::string way_of(const Communicator& communicator);

// A new id, or the one that NCCL_COMM_ID names.
Result<UniqueId> make_unique_id();

// From the first communicator on: at the end of the process those that are left have 200 ms, all
// together, to serve peers and to leave.
void leave_at_exit();

}  // namespace leeway::nccl
