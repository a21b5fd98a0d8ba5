// NCCL's unique id as Leeway fills it: 128 bytes that a program hands to all ranks by a way of its
// own. They say where the ranks meet, and by which secret the ranks know each other.
//
//   0  magic    8  version    9  number of addresses    10  port, big-endian    12  nonce
//   28  secret  60  four addresses, IPv6 or IPv4-mapped    124  CRC32C, big-endian
//
// The magic is "LEEWAYID", or "LEEWAYNT" for the handle of one connection (src/interop/nccl_net).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "interop/nccl/abi.h"
#include "leeway/status.h"

namespace leeway::nccl {

struct UniqueId {
  using Address = std::array<std::uint8_t, 16>;
  static constexpr std::size_t kAddressesMax = 4;
  // Kind of thing that meets by the id. An id for one use is refused for the other.
  enum class Use : std::uint8_t { group, connection };

  std::uint16_t port = 0;
  std::array<std::uint8_t, 16> nonce{};
  std::array<std::uint8_t, 32> secret{};
  std::vector<Address> addresses;  // 1 .. kAddressesMax

  leeway_nccl_id encode(Use use = Use::group) const;
  // Returns kInvalidArgument if another library made it, if it is for another use, or if a byte is
  // wrong.
  static Result<UniqueId> decode(const leeway_nccl_id& id, Use use = Use::group);

  // Returns false for an id made from NCCL_COMM_ID, which is no secret.
  bool has_secret() const;
  // The nonce in hexadecimal digits: the group's name.
  std::string name() const;
  // The secret, in the form of a secret file.
  std::string secret_text() const;
  // "host:port" or "[v6]:port" of each address.
  std::vector<std::string> places() const;
};

}  // namespace leeway::nccl
