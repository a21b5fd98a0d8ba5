// The clear bytes in front of every sealed datagram (WIRE 8.1), and the reasons to refuse one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "leeway/types.h"

namespace leeway::seal {

// The header lies in front of the sealed bytes. The proof covers it, too.
inline constexpr std::size_t kHeaderBytes = 16;
// The proof lies behind the sealed bytes, and shows that the sealer had the key.
inline constexpr std::size_t kProofBytes = 16;
inline constexpr std::size_t kOverheadBytes = kHeaderBytes + kProofBytes;

// Number of key phases that a header can tell apart.
inline constexpr std::uint64_t kPhases = 4;

struct Header {
  bool path_message = false;  // a path message, and not a datagram of the core
  std::uint8_t phase = 0;     // phase of the key, modulo kPhases
  std::uint8_t lane = 0;
  std::uint32_t tag = 0;  // the receiver's name for this sender
  std::uint64_t counter = 0;

  friend bool operator==(const Header&, const Header&) = default;
};

// Reasons to refuse a datagram, in the order of the checks.
enum class Refusal : std::uint8_t {
  none = 0,
  truncated,      // shorter than a header, one byte and a proof
  form,           // not a sealed datagram of this version
  unknown_tag,    // no association has this tag
  wrong_address,  // the tag's association is with a process at another address
  too_old,        // number below the replay window
  replayed,       // number that was opened before
  phase,          // sealed with a key that is no longer here, or not yet
  forged,         // wrong proof: damaged, or not sealed by the peer
};
inline constexpr int kRefusals = 9;
// Names of refusals in metrics and counters.
inline constexpr std::array<const char*, kRefusals> kRefusalNames = {
    "",        "too_short", "unsealed",  "unknown_tag", "wrong_address",
    "too_old", "replayed",  "key_phase", "forged"};

void encode_header(const Header& header, MutableByteSpan out);
// Returns `truncated` or `form` if the bytes are no sealed datagram.
Refusal decode_header(ByteSpan datagram, Header& out);

}  // namespace leeway::seal
