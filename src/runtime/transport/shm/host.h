// Two processes may share memory only if they run as the same user on the same boot of one kernel.
// Containers of a host have one kernel, but perhaps different file systems. So only a trial shows
// whether two processes do share memory (transport/mixed/ring_proof.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "leeway/status.h"

namespace leeway::transport {

struct Host {
  std::array<std::byte, 16> boot{};  // /proc/sys/kernel/random/boot_id
  std::uint32_t user = 0;            // effective user id
};

// Reads the identity of this host. Returns kUnsupported if the kernel does not give it.
Result<Host> this_host(const char* boot_id_file = "/proc/sys/kernel/random/boot_id");

}  // namespace leeway::transport
