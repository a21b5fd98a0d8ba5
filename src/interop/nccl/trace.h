// LEEWAY_NCCL_TRACE: a line of JSON for each operation that is done, with what its report says.
#pragma once

#include <cstdint>
#include <string>

#include <atomic>

#include "interop/nccl/operation.h"
#include "leeway/report.h"
#include "leeway/status.h"

namespace leeway::nccl {

class Trace {
 public:
  struct Where {
    std::string_view communicator;  // its name
    std::uint64_t ordinal = 0;
    int rank = 0;
    int size = 0;
  };

  // Opens the file. An empty name means no trace. Ranks of one host may share a file, as a line is
  // one write.
  Status open(const std::string& file);
  bool active() const { return file_ >= 0; }
  void write(const Where& where, const Operation& operation,
             const Result<CollectiveReport>& outcome) const;

 private:
  int file_ = -1;
  mutable std::atomic<bool> told_{false};  // set once the operator was told that lines are missing
};

// Returns the line, with its line end.
std::string trace_line(const Trace::Where& where, const Operation& operation,
                       const Result<CollectiveReport>& outcome);

}  // namespace leeway::nccl
