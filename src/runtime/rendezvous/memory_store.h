// A StoreTable for several threads. A put wakes the gets that wait for its key.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "leeway/rendezvous.h"
#include "rendezvous/store_table.h"

namespace leeway::rendezvous {

class MemoryStore {
 public:
  explicit MemoryStore(std::size_t bytes_max) : table_(bytes_max) {}

  // Calls `work` with the table locked. Wakes waiting calls if it changed the table.
  void change(const std::function<void(StoreTable&)>& work);

  Result<std::vector<std::byte>> get(std::string_view key, Duration patience);
  Status get_each(std::span<const std::string> keys, Duration patience,
                  const Rendezvous::Taker& take);
  // Waits until the value of `key` was read `reads` times or was erased, or until `patience` is
  // over.
  void wait_read(std::string_view key, std::uint32_t reads, Duration patience);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  StoreTable table_;
  int readings_awaited_ = 0;  // number of wait_read() calls that wait
};

Status store_is_full(std::string_view key);
Status key_is_absent(std::string_view key, Duration patience);

}  // namespace leeway::rendezvous
