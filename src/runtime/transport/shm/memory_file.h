// A file in memory that processes of one user map. Only its owner may use it (mode 0600). All its
// pages are reserved at creation. So a full file system is an error of create(), and never a SIGBUS
// later.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::transport {

// The folder in which Linux keeps POSIX shared memory.
inline constexpr const char* kSharedMemoryFolder = "/dev/shm";

// Mapped addresses. The destructor unmaps them.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept;

  // Maps pages that only this process has, filled with zeros.
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

  // Creates a new file. Returns kUnsupported if the folder does not exist or the name is taken, and
  // kResourceExhausted if there is no room. The first call of a process removes the files that
  // killed processes left behind.
  static Result<MemoryFile> create(const std::string& folder, const std::string& name,
                                   std::size_t bytes);
  // Opens a peer's file. Returns kUnavailable if there is none (yet), and kMismatch if it cannot be
  // the work of create() by this user.
  static Result<MemoryFile> open(const std::string& folder, const std::string& name);
  // Like the other open(), but returns kMismatch unless the file has `bytes` bytes.
  static Result<MemoryFile> open(const std::string& folder, const std::string& name,
                                 std::size_t bytes);
  // Removes files named "leeway-..." of this user whose makers have ended. A living maker holds a
  // lock on its file until the name is removed.
  static void remove_stale(const std::string& folder);
  // Removes a name. Processes that have mapped the file keep the memory. A missing name is no
  // error.
  static void remove_name(const std::string& folder, const std::string& name);

  std::size_t size() const { return bytes_; }

  // Maps the whole file for reading, and the part given by `writable_from` and `writable_bytes` for
  // writing, too.
  Result<Mapping> map(std::size_t writable_from, std::size_t writable_bytes) const;
  Result<Mapping> map_to_read() const { return map(0, 0); }

  // Maps `bytes` bytes of the file, beginning at `from`, for reading and writing. The mapping
  // replaces what was mapped at `place`.
  Status map_over(std::byte* place, std::size_t from, std::size_t bytes) const;

 private:
  MemoryFile(int handle, std::size_t bytes) : handle_(handle), bytes_(bytes) {}

  int handle_ = -1;
  std::size_t bytes_ = 0;
};

}  // namespace leeway::transport
