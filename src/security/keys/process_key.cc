#include "keys/process_key.h"

#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

#include "keys/x25519.h"

namespace leeway::keys {
namespace {

void append(std::string& text, const void* bytes, std::size_t count) {
  text.append(static_cast<const char*>(bytes), count);
}

void append_file(std::string& text, const char* path) {
  std::ifstream file(path);
  text.append(std::istreambuf_iterator<char>(file), {});
}

void append_addresses(std::string& text) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    switch (one->ifa_addr->sa_family) {
      case AF_PACKET:
        append(text, one->ifa_addr, sizeof(sockaddr_ll));
        break;
      case AF_INET:
        append(text, one->ifa_addr, sizeof(sockaddr_in));
        break;
      case AF_INET6:
        append(text, one->ifa_addr, sizeof(sockaddr_in6));
        break;
      default:
        break;
    }
  }
  ::freeifaddrs(first);
}

// Returns bytes that differ between any two keys. The count tells keys of one process apart, and
// the process number and start time tell processes of one machine apart. The boot id does so for
// starts of a machine, and clocks or addresses for cloned machines.
std::string start_identity() {
  static std::atomic<std::uint64_t> keys_made{0};
  const std::uint64_t count = keys_made.fetch_add(1);
  std::string identity;
  append(identity, &count, sizeof count);
  const pid_t process = ::getpid();
  append(identity, &process, sizeof process);
  for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_PROCESS_CPUTIME_ID}) {
    timespec time{};
    ::clock_gettime(clock, &time);
    append(identity, &time, sizeof time);
  }
  append_file(identity, "/proc/sys/kernel/random/boot_id");
  append_file(identity, "/proc/self/stat");
  append_addresses(identity);
  return identity;
}

}  // namespace

Result<std::shared_ptr<const ProcessKey>> ProcessKey::make() {
  Key random;
  fill_randomly(random);
  const std::string identity = start_identity();
  Key private_half = extract(std::as_bytes(std::span(identity)), random);
  auto made = make(private_half);
  wipe(random);
  wipe(private_half);
  return made;
}

Result<std::shared_ptr<const ProcessKey>> ProcessKey::make(const Key& private_half) {
  std::shared_ptr<ProcessKey> made(new ProcessKey);
  made->private_ = private_half;
  const auto public_half = x25519_public_half(private_half);
  if (!public_half) {
    return Status::error(StatusCode::kUnsupported,
                         "this machine's OpenSSL makes no X25519 keys, which a secret needs");
  }
  made->public_ = *public_half;
  return std::shared_ptr<const ProcessKey>(std::move(made));
}

Result<Key> ProcessKey::agree(const Key& other, const Key& meeting, std::uint8_t lane) const {
  std::array<std::byte, 65> what;
  std::copy(other.begin(), other.end(), what.begin());
  std::copy(meeting.begin(), meeting.end(), what.begin() + 32);
  what[64] = std::byte{lane};
  {
    std::lock_guard lock(mutex_);
    if (!given_.insert(extract({}, what)).second) {
      return Status::error(StatusCode::kInternal,
                           "keys for a member, meeting and lane were asked for twice; datagrams "
                           "would have the same nonces");
    }
  }
  const auto shared = x25519_agree(private_, other);
  if (shared) return *shared;
  return Status::error(StatusCode::kMismatch, "a member's public key is none");
}

}  // namespace leeway::keys
