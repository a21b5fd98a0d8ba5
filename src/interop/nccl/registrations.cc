#include "interop/nccl/registrations.h"

#include <utility>

namespace leeway::nccl {

void* Registrations::add(Communicator* communicator, void* memory, std::size_t bytes,
                         Status& told) {
  if (memory == nullptr || bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  for (auto& [number, entry] : entries_) {
    if (entry.memory != memory || entry.bytes != bytes) continue;
    ++entry.count;
    return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr): a number
  }
  Entry entry{memory, bytes, 1, {}};
  if (communicator != nullptr) {
    auto registration =
        communicator->register_memory({static_cast<const std::byte*>(memory), bytes});
    if (registration.ok()) {
      entry.registration = std::move(*registration);
    } else {
      told = registration.status();
    }
  }
  const std::uintptr_t number = next_++;
  entries_.emplace(number, std::move(entry));
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr): a number
}

Status Registrations::remove(void* handle) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(reinterpret_cast<std::uintptr_t>(handle));
  if (found == entries_.end()) {
    return Status::error(StatusCode::kUnsupported,
                         "the handle is of no registration of this communicator");
  }
  if (--found->second.count == 0) entries_.erase(found);
  return Status();
}

void* Registrations::memory_of(void* handle) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(reinterpret_cast<std::uintptr_t>(handle));
  return found == entries_.end() ? nullptr : found->second.memory;
}

void Registrations::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

}  // namespace leeway::nccl
