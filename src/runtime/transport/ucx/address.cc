#include "transport/ucx/address.h"

#include <ucp/api/ucp.h>

#include <cstring>

#include "base/crc32c.h"

namespace leeway::transport {
namespace {

struct Wrapping {
  std::uint8_t layout = 1;
  std::uint8_t ucx_major = 0;
  std::uint8_t ucx_minor = 0;
  std::uint8_t reserved = 0;
  std::uint32_t crc = 0;  // checksum of UCP's bytes
};

Wrapping wrapping_of(ByteSpan worker_address) {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return {1, static_cast<std::uint8_t>(major), static_cast<std::uint8_t>(minor), 0,
          crc32c(worker_address)};
}

}  // namespace

std::vector<std::byte> wrap_ucx_address(ByteSpan worker_address) {
  const Wrapping wrapping = wrapping_of(worker_address);
  std::vector<std::byte> wrapped(sizeof(wrapping) + worker_address.size());
  std::memcpy(wrapped.data(), &wrapping, sizeof(wrapping));
  std::memcpy(wrapped.data() + sizeof(wrapping), worker_address.data(), worker_address.size());
  return wrapped;
}

Result<ByteSpan> unwrap_ucx_address(ByteSpan wrapped, Rank rank, std::size_t bytes_max) {
  Wrapping theirs;
  if (wrapped.size() <= sizeof(theirs) || wrapped.size() > bytes_max) {
    return Status::error(StatusCode::kInvalidArgument, "UCX address of rank %u has %zu bytes", rank,
                         wrapped.size());
  }
  std::memcpy(&theirs, wrapped.data(), sizeof(theirs));
  const ByteSpan address = wrapped.subspan(sizeof(theirs));
  const Wrapping ours = wrapping_of(address);
  if (theirs.layout != ours.layout || theirs.ucx_major != ours.ucx_major ||
      theirs.ucx_minor != ours.ucx_minor) {
    return Status::error(StatusCode::kMismatch,
                         "rank %u has UCX %u.%u, this rank %u.%u: they do not talk to each other",
                         rank, theirs.ucx_major, theirs.ucx_minor, ours.ucx_major, ours.ucx_minor);
  }
  if (theirs.crc != ours.crc) {
    return Status::error(StatusCode::kInvalidArgument, "UCX address of rank %u is damaged", rank);
  }
  return address;
}

std::uint64_t ucx_group_digest(std::span<const std::vector<std::byte>> by_rank) {
  // The digest is two checksums over the addresses, in opposite orders. UCX puts 64 random bits
  // into each worker's address, so another group has another digest.
  std::uint32_t forward = 0;
  std::uint32_t backward = 0;
  for (std::size_t i = 0; i < by_rank.size(); ++i) {
    forward = crc32c(by_rank[i], forward);
    backward = crc32c(by_rank[by_rank.size() - 1 - i], backward);
  }
  return std::uint64_t{forward} << 32 | backward;
}

}  // namespace leeway::transport
