// The clear bytes in front of every sealed datagram (WIRE 8.1), and why one is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "leeway/types.h"

namespace leeway::seal {

// In front of the sealed bytes, and covered by their seal.
inline constexpr std::size_t kHeaderBytes = 16;
// Behind them: what proves that whoever sealed the datagram had the key.
inline constexpr std::size_t kProofBytes = 16;
inline constexpr std::size_t kOverheadBytes = kHeaderBytes + kProofBytes;

// Key phases that a header can tell apart.
inline constexpr std::uint64_t kPhases = 4;

struct Header {
  bool path_message = false;  // and not a datagram of the core
  std::uint8_t phase = 0;     // of the key, modulo kPhases
  std::uint8_t lane = 0;
  std::uint16_t view = 0;  // a hint; 0 as long as groups do not change
  std::uint32_t tag = 0;   // the receiver's name for this sender
  std::uint64_t counter = 0;

  friend bool operator==(const Header&, const Header&) = default;
};

// Reasons to refuse a datagram, in the order of the checks.
enum class Refusal : std::uint8_t {
  none = 0,
  truncated,      // shorter than a header, one byte and a proof
  form,           // not a sealed datagram of this version
  unknown_tag,    // no association's
  wrong_address,  // an association's, with another process than the one it came from
  too_old,        // numbered below the replay window
  replayed,       // numbered as one that was opened
  phase,          // of a key that is not here any more, or not yet
  forged,         // the proof is wrong: damaged, or not sealed by the peer
};
inline constexpr int kRefusals = 9;

void encode_header(const Header& header, MutableByteSpan out);
// Nothing: truncated, or of another form; `refusal` says which.
std::optional<Header> decode_header(ByteSpan datagram, Refusal& refusal);

}  // namespace leeway::seal
