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
