#include "transport/shm/segment.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/contracts.h"

namespace leeway::transport {
namespace {

// Bytes for the heads of both rings. The heads lie in front of the rings' data.
constexpr std::size_t kHeadsBytes = 4096;
static_assert(2 * sizeof(RingHead) <= kHeadsBytes);

constexpr std::size_t file_bytes(std::size_t ring_bytes) {
  return kHeadsBytes + 2 * ring_bytes;
}
// Each ring's data is mapped twice.
constexpr std::size_t mapped_bytes(std::size_t ring_bytes) {
  return kHeadsBytes + 4 * ring_bytes;
}
constexpr bool is_ring_size(std::size_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kRingBytesMin && bytes <= kRingBytesMax;
}

}  // namespace

Status check_shared_memory(const std::string& folder) {
  struct statfs facts {};
  if (::statfs(folder.c_str(), &facts) != 0) {
    return Status::error(StatusCode::kUnsupported, "shared memory in %s: cannot be looked at: %s",
                         folder.c_str(), std::strerror(errno));
  }
  if (facts.f_type == TMPFS_MAGIC) return {};
  return Status::error(StatusCode::kUnsupported,
                       "shared memory in %s: it is no tmpfs: mount -t tmpfs tmpfs %s",
                       folder.c_str(), folder.c_str());
}

Result<Segment> Segment::create(const std::string& folder, const std::string& name,
                                std::size_t ring_bytes) {
  LEEWAY_ASSERT(is_ring_size(ring_bytes));
  if (Status status = check_shared_memory(folder); !status.ok()) return status;
  const auto file = MemoryFile::create(folder, name, file_bytes(ring_bytes));
  if (!file.ok()) return file.status();
  auto segment = map(*file, ring_bytes);
  if (!segment.ok()) MemoryFile::remove_name(folder, name);
  return segment;
}

Result<Segment> Segment::open(const std::string& folder, const std::string& name) {
  const auto file = MemoryFile::open(folder, name);
  if (!file.ok()) return file.status();
  const std::size_t bytes = file->size();
  const std::size_t ring_bytes = bytes > kHeadsBytes ? (bytes - kHeadsBytes) / 2 : 0;
  if (is_ring_size(ring_bytes) && file_bytes(ring_bytes) == bytes) return map(*file, ring_bytes);
  return Status::error(StatusCode::kMismatch,
                       "shared memory in %s: the peer's file holds no two rings", folder.c_str());
}

Result<Segment> Segment::map(const MemoryFile& file, std::size_t ring_bytes) {
  auto memory = Mapping::anonymous(mapped_bytes(ring_bytes));
  if (!memory.ok()) return memory.status();
  struct Part {
    std::size_t at, bytes, offset;
  };
  const std::array<Part, 5> parts = {{
      {0, kHeadsBytes, 0},
      {kHeadsBytes, ring_bytes, kHeadsBytes},
      {kHeadsBytes + ring_bytes, ring_bytes, kHeadsBytes},
      {kHeadsBytes + 2 * ring_bytes, ring_bytes, kHeadsBytes + ring_bytes},
      {kHeadsBytes + 3 * ring_bytes, ring_bytes, kHeadsBytes + ring_bytes},
  }};
  for (const Part& part : parts) {
    const Status status = file.map_over(memory->data() + part.at, part.offset, part.bytes);
    if (!status.ok()) return status;
  }
  return Segment(std::move(*memory), ring_bytes);
}

RingMemory Segment::ring(int number) const {
  LEEWAY_ASSERT(memory_.data() != nullptr && (number == 0 || number == 1));
  return {reinterpret_cast<RingHead*>(memory_.data()) + number,
          memory_.data() + kHeadsBytes + static_cast<std::size_t>(number) * 2 * ring_bytes_,
          ring_bytes_};
}

}  // namespace leeway::transport
