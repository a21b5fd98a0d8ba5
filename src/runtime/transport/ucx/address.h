// A rank's UCX address as it travels through the rendezvous: versions of the layout and of UCX, a
// check sum, and UCP's own bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::transport {

std::vector<std::byte> wrap_ucx_address(ByteSpan worker_address);

// Returns UCP's bytes in `wrapped`. Refuses, naming `rank`, an address that is damaged, too long,
// or of another version of UCX.
Result<ByteSpan> unwrap_ucx_address(ByteSpan wrapped, Rank rank, std::size_t bytes_max);

// Returns a digest of all ranks' addresses. It is the same on all ranks of a group, and differs
// between groups.
std::uint64_t ucx_group_digest(std::span<const std::vector<std::byte>> by_rank);

}  // namespace leeway::transport
