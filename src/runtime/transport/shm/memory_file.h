// A file in memory that processes of one user map. Only its owner may use it (mode 0600), and its
// pages are taken when it is created: a full file system is an error then, and never a SIGBUS.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::transport {

// The folder in which Linux keeps POSIX shared memory.
inline constexpr const char* kSharedMemoryFolder = "/dev/shm";

// Mapped addresses, which are given back when the object is destroyed.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept;

  // Pages that only this process has, filled with zeros.
  static Result<Mapping> anonymous(std::size_t bytes);

  std::byte* data() const { return memory_; }
  std::size_t size() const { return bytes_; }
  bool contains(ByteSpan part) const {
    return part.data() >= memory_ && part.data() + part.size() <= memory_ + bytes_;
  }

 private:
  friend class MemoryFile;
  Mapping(std::byte* memory, std::size_t bytes) : memory_(memory), bytes_(bytes) {}

  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

class MemoryFile {
 public:
  MemoryFile() = default;
  ~MemoryFile();
  MemoryFile(MemoryFile&& other) noexcept { *this = std::move(other); }
  MemoryFile& operator=(MemoryFile&& other) noexcept;

  // Creates a new file. Returns kUnsupported if there is no such folder, or the name is taken, and
  // kResourceExhausted if there is no room. The first call of a process removes the files that
  // killed processes left behind.
  static Result<MemoryFile> create(const std::string& folder, const std::string& name,
                                   std::size_t bytes);
  // Opens a peer's file. Returns kUnavailable if there is none (yet), and kMismatch if it is not a
  // file as processes of this user make it.
  static Result<MemoryFile> open(const std::string& folder, const std::string& name);
  // The same as open() without a size, for a file of `bytes` bytes: another size is a kMismatch.
  static Result<MemoryFile> open(const std::string& folder, const std::string& name,
                                 std::size_t bytes);
  // Removes files named "leeway-..." of this user whose makers have ended: a maker holds a lock on
  // its file until the name is removed.
  static void remove_stale(const std::string& folder);
  // The memory stays with processes that have mapped it. It is no error if there is no such name.
  static void remove_name(const std::string& folder, const std::string& name);

  std::size_t size() const { return bytes_; }

  // Maps the whole file. `writable_from`, `writable_bytes`: the part that may be written as well.
  Result<Mapping> map(std::size_t writable_from, std::size_t writable_bytes) const;
  Result<Mapping> map_to_read() const { return map(0, 0); }

  // Maps a part of the file over addresses that are taken already, to be read and written.
  Status map_over(std::byte* place, std::size_t from, std::size_t bytes) const;

 private:
  MemoryFile(int handle, std::size_t bytes) : handle_(handle), bytes_(bytes) {}

  int handle_ = -1;
  std::size_t bytes_ = 0;
};

}  // namespace leeway::transport
