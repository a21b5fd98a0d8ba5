// Memory that all ranks of a communicator map. Each rank has a part, which only that rank writes
// and all others read. A part is the rank's line (near/line.h) and its slots, through which its
// tensors pass a chunk at a time.
#pragma once

#include <array>
#include <string>

#include "base/contracts.h"
#include "near/line.h"
#include "transport/shm/memory_file.h"

namespace leeway::near {

using transport::Mapping;
using transport::MemoryFile;

// With three slots a rank fills one while peers still read the two before it. So a rank waits for
// the others only once a chunk.
inline constexpr std::size_t kSlots = 3;

struct Shape {
  int ranks = 0;
  std::size_t slot_bytes = 0;  // a multiple of a page

  // Returns a shape for which the slots of all ranks together stay in the caches, and leave room in
  // a container's 64 MB of /dev/shm.
  static Shape of(int ranks);
  std::size_t part_bytes() const { return kLineBytes + kSlots * slot_bytes; }
  std::size_t bytes() const { return static_cast<std::size_t>(ranks) * part_bytes(); }
};

// The arena as rank `self` sees it. The object does not own the memory.
class Arena {
 public:
  Arena(std::byte* memory, const Shape& shape, Rank self)
      : memory_(memory), shape_(shape), self_(self) {
    LEEWAY_ASSERT(self < shape.ranks);
  }

  Rank self() const { return self_; }
  int ranks() const { return shape_.ranks; }
  std::size_t slot_bytes() const { return shape_.slot_bytes; }

  const Line& line(Rank rank) const { return *reinterpret_cast<const Line*>(part(rank)); }
  Line& own_line() const { return *reinterpret_cast<Line*>(part(self_)); }
  // `number` is taken modulo kSlots, because a peer may write any number.
  const std::byte* slot(Rank rank, std::uint64_t number) const {
    return part(rank) + kLineBytes + number % kSlots * shape_.slot_bytes;
  }
  std::byte* own_slot(std::uint64_t number) const {
    return part(self_) + kLineBytes + number % kSlots * shape_.slot_bytes;
  }

 private:
  std::byte* part(Rank rank) const {
    LEEWAY_ASSERT(rank < shape_.ranks);
    return memory_ + rank * shape_.part_bytes();
  }

  std::byte* memory_;
  Shape shape_;
  Rank self_;
};

// The name by which other ranks find an arena while the group meets. Nobody can guess it.
using ArenaName = std::array<std::byte, 16>;

// The file of an arena, and its mapping in this process.
class ArenaFile {
 public:
  // One rank creates the file. A new file is filled with zeros, the initial state of lines.
  static Result<ArenaFile> create(const std::string& folder, const ArenaName& name,
                                  const Shape& shape, Rank self);
  // The other ranks open the file.
  static Result<ArenaFile> open(const std::string& folder, const ArenaName& name,
                                const Shape& shape, Rank self);
  static void remove_name(const std::string& folder, const ArenaName& name);

  Arena arena() const { return {mapping_.data(), shape_, self_}; }
  const std::string& folder() const { return folder_; }
  const ArenaName& name() const { return name_; }

 private:
  ArenaFile(std::string folder, const ArenaName& name, const Shape& shape, Rank self,
            Mapping mapping)
      : folder_(std::move(folder)),
        name_(name),
        shape_(shape),
        self_(self),
        mapping_(std::move(mapping)) {}
  static Result<ArenaFile> map(const MemoryFile& file, const std::string& folder,
                               const ArenaName& name, const Shape& shape, Rank self);

  std::string folder_;
  ArenaName name_;
  Shape shape_;
  Rank self_;
  Mapping mapping_;
};

// Returns "leeway-" and the name in hexadecimal digits. The name of a region's file has further
// numbers behind it.
std::string file_name(const ArenaName& name);

}  // namespace leeway::near
