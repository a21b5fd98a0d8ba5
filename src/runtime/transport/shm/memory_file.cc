#include "transport/shm/memory_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/descriptors.h"
#include "base/per_process.h"

namespace leeway::transport {
namespace {

constexpr std::string_view kNamePrefix = "leeway-";

std::string path_of(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

Status failed(StatusCode code, const std::string& folder, const char* what, int error) {
  return Status::error(code, "shared memory in %s: %s: %s%s", folder.c_str(), what,
                       std::strerror(error), descriptor_hint(error));
}

// Reserves the file's pages. Tries again if a signal interrupts the call, because nothing was
// reserved then.
int reserve(int handle, std::size_t bytes) {
  // If a file grew beyond this limit, the kernel would end the process by SIGXFSZ.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) return EFBIG;
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

// Handles of files that this process made and whose names still exist. A lock on each handle shows
// other processes that this one lives. Never destroyed.
class Named {
 public:
  static Named& here() {
    static auto& of_process = *new PerProcess<Named>;
    return of_process.get();
  }
  void add(const std::string& path, int handle) {
    const std::lock_guard lock(mutex_);
    const auto [known, added] = handles_.emplace(path, handle);
    if (!added) ::close(std::exchange(known->second, handle));
  }
  void remove(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto known = handles_.find(path);
    if (known == handles_.end()) return;
    ::close(known->second);
    handles_.erase(known);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> handles_;
};

// Makes a new file and locks it; the lock shows that the file's maker lives. If another process's
// remove_stale() locks the file first and removes it, makes the file anew. Returns -1 on failure,
// with errno.
int make_locked(const std::string& path) {
  while (true) {
    const int handle =
        ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (handle < 0) return -1;
    struct stat facts {};
    if (::flock(handle, LOCK_SH) == 0 && ::fstat(handle, &facts) == 0 && facts.st_nlink == 0) {
      ::close(handle);
      continue;
    }
    const int kept = ::fcntl(handle, F_DUPFD_CLOEXEC, 0);
    if (kept >= 0) {
      Named::here().add(path, kept);
      return handle;
    }
    const int error = errno;
    ::close(handle);
    (void)::unlink(path.c_str());
    errno = error;
    return -1;
  }
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
  static std::once_flag first;
  std::call_once(first, [&folder] { remove_stale(folder); });
  MemoryFile file(make_locked(path_of(folder, name)), bytes);
  if (file.handle_ < 0) {
    return failed(code_without(errno, StatusCode::kUnsupported), folder, "no file", errno);
  }
  const int error = reserve(file.handle_, bytes);
  if (error == 0) return file;
  remove_name(folder, name);
  const char* const remedy = error == EFBIG ? "raise RLIMIT_FSIZE (ulimit -f)"
                                            : "make it larger (docker run --shm-size, mount -o "
                                              "remount,size=)";
  return Status::error(StatusCode::kResourceExhausted,
                       "shared memory in %s: no room for %zu KiB (%s): %s", folder.c_str(),
                       bytes / 1024, std::strerror(error), remedy);
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
  // posix_fallocate() reserves all pages before it sets the size, so a file with fewer pages is not
  // ours
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
  const std::string path = path_of(folder, name);
  (void)::unlink(path.c_str());
  Named::here().remove(path);
}

void MemoryFile::remove_stale(const std::string& folder) {
  DIR* const files = ::opendir(folder.c_str());
  if (files == nullptr) return;
  while (const dirent* const one = ::readdir(files)) {
    if (!std::string_view(one->d_name).starts_with(kNamePrefix)) continue;
    const int handle =
        ::openat(::dirfd(files), one->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (handle < 0) continue;
    struct stat facts {};
    if (::fstat(handle, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == ::geteuid() &&
        ::flock(handle, LOCK_EX | LOCK_NB) == 0) {
      (void)::unlinkat(::dirfd(files), one->d_name, 0);
    }
    ::close(handle);
  }
  ::closedir(files);
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
