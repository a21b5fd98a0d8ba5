// The communicators of this process, by the handles that its program has.
//
// A handle is a number that is never used again, not an address. So a handle that was destroyed is
// not found, and one that was made before a fork is recognized as such.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/per_process.h"
#include "interop/nccl/abi.h"
#include "leeway/status.h"

namespace leeway::nccl {

class Comm;

class Registry {
 public:
  leeway_nccl_comm add(std::shared_ptr<Comm> comm);
  // Returns kInvalidArgument if there is no such handle, in NCCL's words if it is null. Returns
  // kUnsupported if the handle was made before this process was forked. `title` names the call.
  Result<std::shared_ptr<Comm>> find(leeway_nccl_comm handle, std::string_view title);
  // Like find(), but also removes the handle.
  Result<std::shared_ptr<Comm>> take(leeway_nccl_comm handle, std::string_view title);
  std::vector<std::shared_ptr<Comm>> take_all();

 private:
  struct Table {
    std::shared_mutex mutex;
    std::unordered_map<std::uint64_t, std::shared_ptr<Comm>> comms;
    // Handles below this were made before this process was forked.
    std::uint64_t first = next_number;
  };
  static Status absent(const Table& table, leeway_nccl_comm handle, std::string_view title);

  static inline std::atomic<std::uint64_t> next_number{1};
  PerProcess<Table> table_;
};

}  // namespace leeway::nccl
