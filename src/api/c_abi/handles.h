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

// Moves the report of a call to `report`, which may be null. Returns the call's error if it failed.
inline Status keep(Result<CollectiveReport> outcome, leeway_report* report) {
  if (!outcome.ok()) return outcome.status();
  if (report != nullptr) report->value = std::move(*outcome);
  return Status();
}

// Returns `check`, the result of checking a collective's arguments. A refused collective must still
// take its number, or peers would match their call with this rank's next one. So a call without
// memory, which fails on all ranks, is started in place of the refused one.
inline Status counted(leeway_communicator* communicator, const Status& check) {
  const TensorView nowhere(nullptr, 1, DataType::f32);
  if (!check.ok() && communicator != nullptr)
    (void)communicator->value->all_reduce_async(nowhere, nowhere, {});
  return check;
}

}  // namespace leeway::c_abi
