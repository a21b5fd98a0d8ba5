// The messages of the rendezvous: values of a store, in Protobuf with a magic number. A stranger
// may have written any value, so the magic number and then each field are checked.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/limits.h"
#include "control.pb.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::rendezvous {

inline constexpr std::uint32_t kControlMagic = 0x4C575256;  // "LWRV"

// Encodes a message. A Hello must be within limits::kHelloBytesMax, a Welcome within
// kWelcomeBytesMax.
std::vector<std::byte> value_of(const google::protobuf::MessageLite& message);

// Appends a proof of the bytes of `value` as field 17 (WIRE 7.20).
std::vector<std::byte> with_proof(std::vector<std::byte> value, ByteSpan proof);
// Returns the bytes of `value` that `proof` covers: all that lie before it. Returns nullopt if the
// proof is not the last field.
std::optional<ByteSpan> covered_bytes(ByteSpan value, const std::string& proof);

// Returns nullopt unless the magic is right and the meeting's number is not 0. The fields of an
// Invitation mean the same in all protocol versions.
std::optional<control::Invitation> parse_invitation(ByteSpan value);

// Returns a Hello whose fields need no further checks of form: magic right, numbers in the ranges
// of their types, an address of 4 or 16 bytes, port not 0, few offers of transports that exist. In
// a Hello of another protocol version, only version, library version and rank mean anything.
// Returns nullopt if the value is not a message of ours.
std::optional<control::Hello> parse_hello(ByteSpan value);

// Returns a Welcome with exactly one outcome. A group in it is complete: `size` members of its
// transport, usable addresses, epoch not 0, datagram sizes within limits, a valid multicast
// address, and each rank's numbers of its process and of its join_group() call.
std::optional<control::Welcome> parse_welcome(ByteSpan value, int size);

control::Welcome rejection_of(const Status& reason);
Status status_of(const control::Rejection& rejection);

}  // namespace leeway::rendezvous
