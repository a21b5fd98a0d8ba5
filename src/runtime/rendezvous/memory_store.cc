#include "rendezvous/memory_store.h"

#include <algorithm>
#include <chrono>

namespace leeway::rendezvous {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Returns the end of `patience`, which is limited to a day so that the sum does not overflow.
SteadyClock::time_point end_of(Duration patience) {
  return SteadyClock::now() + std::clamp<Duration>(patience, Duration(0), std::chrono::hours(24));
}

}  // namespace

Status store_is_full(std::string_view key) {
  return Status::error(StatusCode::kResourceExhausted, "rendezvous: no room for \"%.*s\"",
                       static_cast<int>(key.size()), key.data());
}

Status key_is_absent(std::string_view key, Duration patience) {
  return Status::error(
      StatusCode::kDeadlineExceeded, "rendezvous: \"%.*s\" did not come within %.1f s",
      static_cast<int>(key.size()), key.data(), std::chrono::duration<double>(patience).count());
}

void MemoryStore::change(const std::function<void(StoreTable&)>& work) {
  bool matters = false;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t changes = table_.changes();
    const std::uint64_t reads = table_.all_reads();
    work(table_);
    matters = table_.changes() != changes || (readings_awaited_ > 0 && table_.all_reads() != reads);
  }
  if (matters) changed_.notify_all();
}

Result<std::vector<std::byte>> MemoryStore::get(std::string_view key, Duration patience) {
  StoreTable::Value value;
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, end_of(patience),
                        [&] { return (value = table_.read(key)) != nullptr; });
    if (value != nullptr && readings_awaited_ > 0) changed_.notify_all();
  }
  if (value == nullptr) return key_is_absent(key, patience);
  return *value;
}

Status MemoryStore::get_each(std::span<const std::string> keys, Duration patience,
                             const Rendezvous::Taker& take) {
  const auto end = end_of(patience);
  std::vector<std::size_t> open(keys.size());
  for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
  std::vector<std::pair<std::size_t, StoreTable::Value>> found;
  while (!open.empty()) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, end, [&] {
        std::erase_if(open, [&](std::size_t index) {
          StoreTable::Value value = table_.read(keys[index]);
          if (value == nullptr) return false;
          found.emplace_back(index, std::move(value));
          return true;
        });
        return !found.empty();
      });
    }
    if (found.empty()) return {};
    for (const auto& [index, value] : found) {
      if (!take(index, *value)) return {};
    }
    found.clear();
  }
  return {};
}

void MemoryStore::wait_read(std::string_view key, std::uint32_t reads, Duration patience) {
  std::unique_lock lock(mutex_);
  ++readings_awaited_;
  changed_.wait_until(lock, end_of(patience),
                      [&] { return !table_.contains(key) || table_.reads(key) >= reads; });
  --readings_awaited_;
}

}  // namespace leeway::rendezvous
