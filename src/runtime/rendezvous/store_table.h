// The keys and values of a store in memory, and the waiters for each key. No sockets, no clock, no
// lock: the owner of the table has those.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "leeway/rendezvous.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::rendezvous {

// Returns true for keys that every store takes: 1 .. kKeyBytesMax bytes of the alphabet in
// leeway/rendezvous.h.
bool is_key(std::string_view key);

// Returns kInvalidArgument if no store takes such a key (see is_key()) or so long a value.
Status check_put(std::string_view key, ByteSpan value);

class StoreTable {
 public:
  // The bytes of a value are part of bytes() until the last holder of this pointer releases it,
  // even if the key has another value by then.
  using Value = std::shared_ptr<const std::vector<std::byte>>;
  // A writer or waiter: 0 is this process, others are the server's connections.
  using Owner = std::uint64_t;
  struct Waiter {
    Owner owner = 0;
    std::uint32_t request = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): the generated comparison with 0
    auto operator<=>(const Waiter&) const = default;
  };
  // A waiter whose key has come, and the value.
  struct Woken {
    Waiter waiter;
    Value value;
  };

  explicit StoreTable(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Returns the bytes that a key with its value adds to bytes().
  static std::size_t cost_of(std::string_view key, ByteSpan value);
  // Returns true if `more` bytes have room. If need be, erases keys that all their readers have
  // read.
  bool make_room(std::size_t more);

  // Puts a value. Returns false, and stores nothing, if the table is full. Appends to `woken` the
  // waiters for this key, with the value. The key may be erased after `readers` reads, or never if
  // `readers` is 0.
  bool put(std::string_view key, ByteSpan value, Owner owner, std::uint32_t readers,
           std::vector<Woken>& woken);

  // Returns null if the key has no value. Counts as a read.
  Value read(std::string_view key);
  bool contains(std::string_view key) const;
  void erase(std::string_view key);
  // Erases the key only if `owner` put its present value.
  void erase_of(std::string_view key, Owner owner);

  // Adds or removes a waiter for a key that is not there.
  void wait(std::string_view key, Waiter waiter);
  void cancel(std::string_view key, Waiter waiter);

  // Returns how often the key's present value was read, or 0 without a value.
  std::uint32_t reads(std::string_view key) const;

  // changes() is the number of puts and erasures, all_reads() the number of reads. Callers compare
  // earlier with later numbers to see whether something changed.
  std::uint64_t changes() const { return changes_; }
  std::uint64_t all_reads() const { return all_reads_; }

  // Bytes of all values that anyone still holds, with their keys.
  std::size_t bytes() const { return *bytes_; }

 private:
  struct Entry {
    Value value;  // set by the first put
    Owner owner = 0;
    std::uint32_t readers = 0;
    std::uint32_t reads = 0;
    std::set<Waiter> waiters;  // up to a quarter of a million for one key
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  Value make_value(ByteSpan bytes, std::size_t cost);

  const std::size_t bytes_max_;
  // Shared with the values, which may outlive the table.
  std::shared_ptr<std::atomic<std::size_t>> bytes_ = std::make_shared<std::atomic<std::size_t>>(0);
  Entries entries_;
  std::uint64_t changes_ = 0;
  std::uint64_t all_reads_ = 0;
};

}  // namespace leeway::rendezvous
