#include "transport/shm/segment.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/contracts.h"

namespace leeway::transport {
namespace {

// Of the heads of both rings, which lie in front of their data.
constexpr std::size_t kHeadsBytes = 4096;
static_assert(2 * sizeof(RingHead) <= kHeadsBytes);

constexpr std::size_t file_bytes(std::size_t ring_bytes) {
  return kHeadsBytes + 2 * ring_bytes;
}
// Each ring's data is there twice.
constexpr std::size_t mapped_bytes(std::size_t ring_bytes) {
  return kHeadsBytes + 4 * ring_bytes;
}
constexpr bool is_ring_size(std::size_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kRingBytesMin && bytes <= kRingBytesMax;
}

// A file descriptor of this scope.
class File {
 public:
  explicit File(int handle) : handle_(handle) {}
  ~File() {
    if (handle_ >= 0) ::close(handle_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return handle_; }

 private:
  const int handle_;
};

std::string path_of(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

Status failed(StatusCode code, const std::string& folder, const char* what, int error) {
  return Status::error(code, "shared memory in %s: %s: %s", folder.c_str(), what,
                       std::strerror(error));
}

Status full(const std::string& folder, std::size_t bytes, int error) {
  return Status::error(StatusCode::kResourceExhausted,
                       "shared memory in %s: no room for %zu KiB (%s): make it larger (docker run "
                       "--shm-size, mount -o remount,size=)",
                       folder.c_str(), bytes / 1024, std::strerror(error));
}

}  // namespace

Status check_shared_memory(const std::string& folder) {
  struct statfs facts {};
  if (::statfs(folder.c_str(), &facts) != 0)
    return failed(StatusCode::kUnsupported, folder, "cannot be looked at", errno);
  if (facts.f_type == TMPFS_MAGIC) return {};
  return Status::error(StatusCode::kUnsupported,
                       "shared memory in %s: it is no tmpfs: mount -t tmpfs tmpfs %s",
                       folder.c_str(), folder.c_str());
}

Result<Segment> Segment::create(const std::string& folder, const std::string& name,
                                std::size_t ring_bytes) {
  LEEWAY_ASSERT(is_ring_size(ring_bytes));
  if (Status status = check_shared_memory(folder); !status.ok()) return status;
  const std::string path = path_of(folder, name);
  const File file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.get() < 0) return failed(StatusCode::kUnsupported, folder, "no file", errno);
  const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(file_bytes(ring_bytes)));
  if (error != 0) {
    remove_name(folder, name);
    return full(folder, file_bytes(ring_bytes), error);
  }
  auto segment = map(file.get(), ring_bytes);
  if (!segment.ok()) remove_name(folder, name);
  return segment;
}

Result<Segment> Segment::open(const std::string& folder, const std::string& name) {
  const File file(::open(path_of(folder, name).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (file.get() < 0) {
    const StatusCode code = errno == ENOENT ? StatusCode::kUnavailable : StatusCode::kMismatch;
    return failed(code, folder, "the peer's file", errno);
  }
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0)
    return failed(StatusCode::kMismatch, folder, "the peer's file", errno);
  const auto bytes = static_cast<std::size_t>(facts.st_size);
  const std::size_t ring_bytes = bytes > kHeadsBytes ? (bytes - kHeadsBytes) / 2 : 0;
  // The creator's pages come before its size can be this: see posix_fallocate()
  const bool whole = facts.st_size > 0 && is_ring_size(ring_bytes) &&
                     file_bytes(ring_bytes) == bytes &&
                     static_cast<std::size_t>(facts.st_blocks) * 512 >= bytes;
  if (S_ISREG(facts.st_mode) && facts.st_size == 0)
    return Status::error(StatusCode::kUnavailable, "shared memory in %s: not complete yet",
                         folder.c_str());
  if (!S_ISREG(facts.st_mode) || !whole || facts.st_uid != ::geteuid() ||
      (facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Status::error(StatusCode::kMismatch,
                         "shared memory in %s: the peer's file is not what this user makes",
                         folder.c_str());
  }
  return map(file.get(), ring_bytes);
}

void Segment::remove_name(const std::string& folder, const std::string& name) {
  (void)::unlink(path_of(folder, name).c_str());
}

Result<Segment> Segment::map(int file, std::size_t ring_bytes) {
  const std::size_t bytes = mapped_bytes(ring_bytes);
  void* const place = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) {
    return Status::error(StatusCode::kResourceExhausted, "shared memory: no addresses: %s",
                         std::strerror(errno));
  }
  Segment segment;
  segment.memory_ = static_cast<std::byte*>(place);
  segment.ring_bytes_ = ring_bytes;
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
    if (::mmap(segment.memory_ + part.at, part.bytes, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_FIXED | MAP_POPULATE, file,
               static_cast<off_t>(part.offset)) == MAP_FAILED) {
      return Status::error(StatusCode::kResourceExhausted, "shared memory: it cannot be mapped: %s",
                           std::strerror(errno));
    }
  }
  return segment;
}

Segment::~Segment() {
  if (memory_ != nullptr) ::munmap(memory_, mapped_bytes(ring_bytes_));
}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(ring_bytes_, other.ring_bytes_);
  return *this;
}

RingMemory Segment::ring(int number) const {
  LEEWAY_ASSERT(memory_ != nullptr && (number == 0 || number == 1));
  return {reinterpret_cast<RingHead*>(memory_) + number,
          memory_ + kHeadsBytes + static_cast<std::size_t>(number) * 2 * ring_bytes_, ring_bytes_};
}

}  // namespace leeway::transport
