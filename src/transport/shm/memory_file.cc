#include "transport/shm/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace leeway::transport {
namespace {

std::string path_of(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

Status failed(StatusCode code, const std::string& folder, const char* what, int error) {
  return Status::error(code, "shared memory in %s: %s: %s", folder.c_str(), what,
                       std::strerror(error));
}

// A signal interrupts it, and then nothing of it stays.
int reserve(int handle, std::size_t bytes) {
  int error = 0;
  do {
    error = ::posix_fallocate(handle, 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  return error;
}

Status not_ours(const std::string& folder) {
  return Status::error(StatusCode::kMismatch,
                       "shared memory in %s: the peer's file is not what this user makes",
                       folder.c_str());
}

}  // namespace

Mapping::~Mapping() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<Mapping> Mapping::anonymous(std::size_t bytes) {
  void* const place =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) {
    return Status::error(StatusCode::kResourceExhausted, "no memory of %zu bytes: %s", bytes,
                         std::strerror(errno));
  }
  return Mapping(static_cast<std::byte*>(place), bytes);
}

MemoryFile::~MemoryFile() {
  if (handle_ >= 0) ::close(handle_);
}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<MemoryFile> MemoryFile::create(const std::string& folder, const std::string& name,
                                      std::size_t bytes) {
  MemoryFile file(::open(path_of(folder, name).c_str(),
                         O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR),
                  bytes);
  if (file.handle_ < 0) return failed(StatusCode::kUnsupported, folder, "no file", errno);
  const int error = reserve(file.handle_, bytes);
  if (error == 0) return file;
  remove_name(folder, name);
  return Status::error(StatusCode::kResourceExhausted,
                       "shared memory in %s: no room for %zu KiB (%s): make it larger (docker run "
                       "--shm-size, mount -o remount,size=)",
                       folder.c_str(), bytes / 1024, std::strerror(error));
}

Result<MemoryFile> MemoryFile::open(const std::string& folder, const std::string& name) {
  MemoryFile file(::open(path_of(folder, name).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC), 0);
  if (file.handle_ < 0) {
    const StatusCode code = errno == ENOENT ? StatusCode::kUnavailable : StatusCode::kMismatch;
    return failed(code, folder, "the peer's file", errno);
  }
  struct stat facts {};
  if (::fstat(file.handle_, &facts) != 0)
    return failed(StatusCode::kMismatch, folder, "the peer's file", errno);
  if (S_ISREG(facts.st_mode) && facts.st_size == 0) {
    return Status::error(StatusCode::kUnavailable, "shared memory in %s: not complete yet",
                         folder.c_str());
  }
  // The creator's pages come before its size: see posix_fallocate()
  if (!S_ISREG(facts.st_mode) || facts.st_size < 0 || facts.st_blocks * 512 < facts.st_size ||
      facts.st_uid != ::geteuid() || (facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return not_ours(folder);
  }
  file.bytes_ = static_cast<std::size_t>(facts.st_size);
  return file;
}

Result<MemoryFile> MemoryFile::open(const std::string& folder, const std::string& name,
                                    std::size_t bytes) {
  auto file = open(folder, name);
  if (file.ok() && file->size() != bytes) return not_ours(folder);
  return file;
}

void MemoryFile::remove_name(const std::string& folder, const std::string& name) {
  (void)::unlink(path_of(folder, name).c_str());
}

Result<Mapping> MemoryFile::map(std::size_t writable_from, std::size_t writable_bytes) const {
  void* const place = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED | MAP_POPULATE, handle_, 0);
  if (place == MAP_FAILED) {
    return Status::error(StatusCode::kResourceExhausted, "shared memory: it cannot be mapped: %s",
                         std::strerror(errno));
  }
  Mapping mapping(static_cast<std::byte*>(place), bytes_);
  if (writable_bytes == 0) return mapping;
  const Status status = map_over(mapping.data() + writable_from, writable_from, writable_bytes);
  if (!status.ok()) return status;
  return mapping;
}

Status MemoryFile::map_over(std::byte* place, std::size_t from, std::size_t bytes) const {
  if (::mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, handle_,
             static_cast<off_t>(from)) != MAP_FAILED) {
    return Status();
  }
  return Status::error(StatusCode::kResourceExhausted, "shared memory: it cannot be mapped: %s",
                       std::strerror(errno));
}

}  // namespace leeway::transport
