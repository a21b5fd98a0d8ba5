// Stores in the memory of this process and in a folder; default functions of Rendezvous.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "leeway/rendezvous.h"
#include "rendezvous/memory_store.h"
#include "rendezvous/rendezvous_limits.h"

namespace leeway {

using rendezvous::MemoryStore;
using SteadyClock = std::chrono::steady_clock;

Rendezvous::~Rendezvous() = default;

Status Rendezvous::put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) {
  (void)lifetime;
  return put(key, value);
}

Duration Rendezvous::round_trip() const {
  return Duration(0);
}

Status Rendezvous::erase(std::string_view key) {
  (void)key;
  return {};
}

// Looks at all missing keys in turn, again and again. In each turn it waits for the first missing
// key and then only looks at the others, since get() waits for one key.
Status Rendezvous::get_each(std::span<const std::string> keys, Duration patience,
                            const Taker& take) {
  const auto end =
      SteadyClock::now() + std::clamp<Duration>(patience, Duration(0), std::chrono::hours(24));
  Duration wait = std::chrono::milliseconds(20);
  std::vector<std::size_t> open(keys.size());
  for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
  while (!open.empty()) {
    bool waited = false;
    std::vector<std::size_t> missing;
    for (const std::size_t index : open) {
      const Duration left = end - SteadyClock::now();
      auto value = get(keys[index], waited ? Duration(0) : std::min(wait, left));
      if (value.ok()) {
        if (!take(index, std::move(*value))) return {};
        continue;
      }
      if (value.status().code() != StatusCode::kDeadlineExceeded) return value.status();
      waited = true;
      missing.push_back(index);
    }
    if (SteadyClock::now() >= end) return {};
    open = std::move(missing);
    wait = std::min<Duration>(2 * wait, std::chrono::milliseconds(500));
  }
  return {};
}

struct InprocRendezvous::Memory {
  MemoryStore store{rendezvous::RendezvousLimits().bytes_max};
};

InprocRendezvous::InprocRendezvous() : memory_(std::make_unique<Memory>()) {}
InprocRendezvous::~InprocRendezvous() = default;

Status InprocRendezvous::put(std::string_view key, ByteSpan value) {
  return put_briefly(key, value, {});
}

Status InprocRendezvous::put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) {
  if (Status status = rendezvous::check_put(key, value); !status.ok()) return status;
  bool room = false;
  memory_->store.change([&](rendezvous::StoreTable& table) {
    std::vector<rendezvous::StoreTable::Woken> nobody;
    room = table.put(key, value, 0, lifetime.readers, nobody);
  });
  return room ? Status() : rendezvous::store_is_full(key);
}

Result<std::vector<std::byte>> InprocRendezvous::get(std::string_view key, Duration patience) {
  return memory_->store.get(key, patience);
}

Status InprocRendezvous::erase(std::string_view key) {
  memory_->store.change([key](rendezvous::StoreTable& table) { table.erase(key); });
  return {};
}

Status InprocRendezvous::get_each(std::span<const std::string> keys, Duration patience,
                                  const Taker& take) {
  return memory_->store.get_each(keys, patience, take);
}

namespace {

Status file_error(const char* what, const std::string& path) {
  return Status::error(StatusCode::kUnavailable, "rendezvous: cannot %s %.120s: %s", what,
                       path.c_str(), std::strerror(errno));
}

// Returns the path of a key's file. '+' replaces '/', and keys contain no '+'.
std::string file_of(const std::string& folder, std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '/', '+');
  return folder + "/" + name + ".value";
}

// A name that no other process or thread uses.
std::string temporary_of(const std::string& folder) {
  static std::atomic<std::uint32_t> count{0};
  std::random_device device;
  return folder + "/.new." + std::to_string(device()) + "." + std::to_string(device()) + "." +
         std::to_string(count++);
}

Status write_file(const std::string& path, ByteSpan value) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return file_error("write", path);
  Status status;
  while (!value.empty() && status.ok()) {
    const ssize_t written = ::write(file, value.data(), value.size());
    if (written < 0 && errno != EINTR) status = file_error("write", path);
    if (written > 0) value = value.subspan(static_cast<std::size_t>(written));
  }
  if (::close(file) != 0 && status.ok()) status = file_error("write", path);
  return status;
}

// Returns kDeadlineExceeded if there is no such file.
Result<std::vector<std::byte>> read_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return rendezvous::key_is_absent(path, Duration(0));
  if (file < 0) return file_error("read", path);
  struct stat facts {};
  Status status;
  std::vector<std::byte> value;
  if (::fstat(file, &facts) != 0) status = file_error("read", path);
  if (status.ok() && static_cast<std::size_t>(facts.st_size) > Rendezvous::kValueBytesMax) {
    status = Status::error(StatusCode::kResourceExhausted, "rendezvous: %.120s is too long",
                           path.c_str());
  }
  if (status.ok()) value.resize(static_cast<std::size_t>(facts.st_size));
  for (std::size_t done = 0; done < value.size() && status.ok();) {
    const ssize_t got = ::read(file, value.data() + done, value.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) status = file_error("read", path);
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  ::close(file);
  if (!status.ok()) return status;
  return value;
}

// Makes an NFS client ask the server again for names that it remembers as missing.
void look_at_folder(const std::string& folder) {
  const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened >= 0) ::close(opened);
}

}  // namespace

FileRendezvous::FileRendezvous(std::string folder) : folder_(std::move(folder)) {}

Status FileRendezvous::put(std::string_view key, ByteSpan value) {
  if (Status status = rendezvous::check_put(key, value); !status.ok()) return status;
  std::error_code ignored;  // without the folder writing fails
  std::filesystem::create_directories(folder_, ignored);
  const std::string temporary = temporary_of(folder_);
  const std::string path = file_of(folder_, key);
  Status status = write_file(temporary, value);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = file_error("rename a file to", path);
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

Result<std::vector<std::byte>> FileRendezvous::get(std::string_view key, Duration patience) {
  if (Status status = rendezvous::check_put(key, {}); !status.ok()) return status;
  const auto end = SteadyClock::now() + std::min<Duration>(patience, std::chrono::hours(24));
  const std::string path = file_of(folder_, key);
  Duration pause = std::chrono::milliseconds(1);
  while (true) {
    auto value = read_file(path);
    const Duration left = end - SteadyClock::now();
    if (value.ok() || value.status().code() != StatusCode::kDeadlineExceeded) return value;
    if (left <= Duration(0)) return rendezvous::key_is_absent(key, patience);
    std::this_thread::sleep_for(std::min(pause, left));
    pause = std::min<Duration>(2 * pause, std::chrono::milliseconds(50));
    look_at_folder(folder_);
  }
}

Status FileRendezvous::erase(std::string_view key) {
  if (Status status = rendezvous::check_put(key, {}); !status.ok()) return status;
  const std::string path = file_of(folder_, key);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return file_error("remove", path);
  return {};
}

}  // namespace leeway
