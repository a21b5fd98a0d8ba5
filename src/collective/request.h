// An operation asked for, and its outcome once done.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "collective/operation_spec.h"
#include "leeway/report.h"

namespace leeway::collective {

// Owned by whoever submitted it, until done.
struct Request {
  OperationSpec spec;
  std::uint64_t sequence = 0;                     // on this communicator, from 0
  std::optional<std::uint64_t> automatic_number;  // among the reductions whose codec is automatic
  Instant submitted{0};  // deadlines count from here, also for an operation that had to queue
  bool done = false;
  Status status;
  CollectiveReport report;
};

}  // namespace leeway::collective
