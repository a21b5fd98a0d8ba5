#include "interop/nccl/registry.h"

#include <mutex>
#include <utility>

#include "interop/nccl/comm.h"

namespace leeway::nccl {
namespace {

// Handles look like pointers, but stay small, so that they are no address of mapped memory.
constexpr unsigned kHandleShift = 4;

std::uint64_t number_of(leeway_nccl_comm handle) {
  return reinterpret_cast<std::uintptr_t>(handle) >> kHandleShift;
}

}  // namespace

leeway_nccl_comm Registry::add(std::shared_ptr<Comm> comm) {
  Table& here = table_.get();
  const std::lock_guard lock(here.mutex);
  const std::uint64_t number = next_number++;
  here.comms.emplace(number, std::move(comm));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): nobody reads what it points to
  return reinterpret_cast<leeway_nccl_comm>(number << kHandleShift);
}

Status Registry::absent(const Table& table, leeway_nccl_comm handle, std::string_view title) {
  const int length = static_cast<int>(title.size());
  if (handle == nullptr) {
    return Status::error(StatusCode::kInvalidArgument, "%.*s : comm argument is NULL", length,
                         title.data());
  }
  if (number_of(handle) < table.first) {
    return Status::error(StatusCode::kUnsupported,
                         "%.*s : this process was forked from the one that made the communicator; "
                         "make communicators after fork()",
                         length, title.data());
  }
  return Status::error(StatusCode::kInvalidArgument,
                       "%.*s : comm argument is no communicator: it was destroyed or aborted, or "
                       "another library made it",
                       length, title.data());
}

Result<std::shared_ptr<Comm>> Registry::find(leeway_nccl_comm handle, std::string_view title) {
  Table& here = table_.get();
  const std::shared_lock lock(here.mutex);
  const auto found = here.comms.find(number_of(handle));
  if (handle == nullptr || found == here.comms.end()) return absent(here, handle, title);
  return found->second;
}

Result<std::shared_ptr<Comm>> Registry::take(leeway_nccl_comm handle, std::string_view title) {
  Table& here = table_.get();
  const std::lock_guard lock(here.mutex);
  const auto found = here.comms.find(number_of(handle));
  if (handle == nullptr || found == here.comms.end()) return absent(here, handle, title);
  auto comm = std::move(found->second);
  here.comms.erase(found);
  return comm;
}

std::vector<std::shared_ptr<Comm>> Registry::take_all() {
  Table& here = table_.get();
  const std::lock_guard lock(here.mutex);
  std::vector<std::shared_ptr<Comm>> comms;
  for (auto& [number, comm] : here.comms) comms.push_back(std::move(comm));
  here.comms.clear();
  return comms;
}

}  // namespace leeway::nccl
