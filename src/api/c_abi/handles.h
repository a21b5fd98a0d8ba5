// The structs behind the opaque pointers of the C interface.
#pragma once

#include <memory>

#include "leeway/leeway.h"

struct leeway_communicator {
  std::unique_ptr<leeway::Communicator> value;
};
struct leeway_pending {
  leeway::PendingCommunicator value;
};
struct leeway_work {
  leeway::Work value;
};
struct leeway_registration {
  leeway::MemoryRegistration value;
};
struct leeway_report {
  leeway::CollectiveReport value;
};
struct leeway_rendezvous {
  std::shared_ptr<leeway::Rendezvous> value;
  std::string address;  // for a TCP store; else empty
};
struct leeway_value {
  std::vector<std::byte> bytes;
  bool set = false;
};

namespace leeway::c_abi {

// Moves a call's report to the caller's, if there is one. Returns the call's error if it failed.
inline Status keep(Result<CollectiveReport> outcome, leeway_report* report) {
  if (!outcome.ok()) return outcome.status();
  if (report != nullptr) report->value = std::move(*outcome);
  return Status();
}

// Returns the result of checking a collective call's arguments. A call that is refused by it still
// takes its number, and fails on the peers, as a collective that every route refuses, since it has
// no memory. The peers would otherwise take this rank's next call for it.
inline Status counted(leeway_communicator* communicator, const Status& check) {
  const TensorView nowhere(nullptr, 1, DataType::f32);
  if (!check.ok() && communicator != nullptr)
    (void)communicator->value->all_reduce_async(nowhere, nowhere, {});
  return check;
}

}  // namespace leeway::c_abi
