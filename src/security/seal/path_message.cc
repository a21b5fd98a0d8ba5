#include "seal/path_message.h"

#include <algorithm>
#include <cstring>

#include "base/contracts.h"
#include "seal/little_endian.h"

namespace leeway::seal {
namespace {

// Fields by WIRE 9.1: kind, 0, port, token, address.
constexpr std::size_t kPortAt = 2;
constexpr std::size_t kTokenAt = 4;
constexpr std::size_t kAddressAt = 12;
constexpr std::size_t kKeepAliveBytes = 1;

// Fields by WIRE 9.8: kind, 0, ecn, 0, name.
constexpr std::size_t kEcnAt = 2;
constexpr std::size_t kNameAt = 4;

// Fields by WIRE 9.10: kind, 0, 0, 0, refused, bytes a second.
constexpr std::byte kShareKind{11};
constexpr std::size_t kRefusedAt = 4;
constexpr std::size_t kBytesPerSecondAt = 8;

// Fields by WIRE 8.5: kind, 0, 0, 0, phase, half.
constexpr std::size_t kPhaseAt = 4;
constexpr std::size_t kHalfAt = 8;
constexpr std::size_t kConfirmBytes = 1;

constexpr bool carries_half(ExchangeMessage::Kind kind) {
  return kind == ExchangeMessage::Kind::offer || kind == ExchangeMessage::Kind::accept;
}

}  // namespace

std::size_t encode_path_message(const PathMessage& message, MutableByteSpan out) {
  LEEWAY_ASSERT(out.size() >= kPathMessageBytesMax);
  out[0] = static_cast<std::byte>(message.kind);
  if (message.kind == PathMessage::Kind::keep_alive) return kKeepAliveBytes;
  out[1] = std::byte{0};
  put(message.seen.port, out.subspan(kPortAt));
  put(message.token, out.subspan(kTokenAt));
  std::memcpy(out.data() + kAddressAt, message.seen.ip.data(), message.seen.ip.size());
  return kPathMessageBytesMax;
}

std::optional<PathMessage> decode_path_message(ByteSpan bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto kind = std::to_integer<std::uint8_t>(bytes[0]);
  if (kind < static_cast<std::uint8_t>(PathMessage::Kind::challenge) ||
      kind > static_cast<std::uint8_t>(PathMessage::Kind::whereabouts))
    return std::nullopt;
  PathMessage message{.kind = static_cast<PathMessage::Kind>(kind)};
  if (message.kind == PathMessage::Kind::keep_alive)
    return bytes.size() == kKeepAliveBytes ? std::optional(message) : std::nullopt;
  if (bytes.size() != kPathMessageBytesMax || bytes[1] != std::byte{0}) return std::nullopt;
  message.seen.port = take<std::uint16_t>(bytes.subspan(kPortAt));
  message.token = take<std::uint64_t>(bytes.subspan(kTokenAt));
  std::memcpy(message.seen.ip.data(), bytes.data() + kAddressAt, message.seen.ip.size());
  return message;
}

void encode_relay_head(const RelayHead& head, MutableByteSpan out) {
  LEEWAY_ASSERT(out.size() >= kRelayHeadBytes);
  out[0] = static_cast<std::byte>(head.kind);
  out[1] = out[kEcnAt + 1] = std::byte{0};
  out[kEcnAt] = static_cast<std::byte>(head.ecn);
  put(head.name, out.subspan(kNameAt));
}

std::optional<RelayHead> decode_relay_head(ByteSpan bytes) {
  if (bytes.size() <= kRelayHeadBytes) return std::nullopt;
  const auto kind = std::to_integer<std::uint8_t>(bytes[0]);
  const auto ecn = std::to_integer<std::uint8_t>(bytes[kEcnAt]);
  if (kind < static_cast<std::uint8_t>(RelayHead::Kind::onward) ||
      kind > static_cast<std::uint8_t>(RelayHead::Kind::relayed) ||
      ecn > static_cast<std::uint8_t>(Ecn::ce) || bytes[1] != std::byte{0} ||
      bytes[kEcnAt + 1] != std::byte{0})
    return std::nullopt;
  return RelayHead{.kind = static_cast<RelayHead::Kind>(kind),
                   .ecn = static_cast<Ecn>(ecn),
                   .name = take<std::uint64_t>(bytes.subspan(kNameAt))};
}

void encode_share_message(const ShareMessage& message, MutableByteSpan out) {
  LEEWAY_ASSERT(out.size() >= kShareMessageBytes);
  out[0] = kShareKind;
  out[1] = out[2] = out[3] = std::byte{0};
  put(message.refused, out.subspan(kRefusedAt));
  put(message.bytes_per_second, out.subspan(kBytesPerSecondAt));
}

std::optional<ShareMessage> decode_share_message(ByteSpan bytes) {
  if (bytes.size() != kShareMessageBytes ||
      take<std::uint32_t>(bytes) != std::to_integer<std::uint32_t>(kShareKind))
    return std::nullopt;
  return ShareMessage{.refused = take<std::uint32_t>(bytes.subspan(kRefusedAt)),
                      .bytes_per_second = take<std::uint64_t>(bytes.subspan(kBytesPerSecondAt))};
}

std::size_t encode_exchange_message(const ExchangeMessage& message, MutableByteSpan out) {
  LEEWAY_ASSERT(out.size() >= kExchangeMessageBytesMax);
  out[0] = static_cast<std::byte>(message.kind);
  if (!carries_half(message.kind)) return kConfirmBytes;
  out[1] = out[2] = out[3] = std::byte{0};
  put(message.phase, out.subspan(kPhaseAt));
  std::copy(message.half.begin(), message.half.end(), out.begin() + kHalfAt);
  return kExchangeMessageBytesMax;
}

std::optional<ExchangeMessage> decode_exchange_message(ByteSpan bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto kind = std::to_integer<std::uint8_t>(bytes[0]);
  if (kind < static_cast<std::uint8_t>(ExchangeMessage::Kind::offer) ||
      kind > static_cast<std::uint8_t>(ExchangeMessage::Kind::confirmed))
    return std::nullopt;
  ExchangeMessage message{.kind = static_cast<ExchangeMessage::Kind>(kind)};
  const bool has_half = carries_half(message.kind);
  if (bytes.size() != (has_half ? kExchangeMessageBytesMax : kConfirmBytes)) return std::nullopt;
  if (!has_half) return message;
  if (take<std::uint32_t>(bytes) >> 8 != 0) return std::nullopt;
  message.phase = take<std::uint32_t>(bytes.subspan(kPhaseAt));
  std::copy_n(bytes.begin() + kHalfAt, message.half.size(), message.half.begin());
  return message;
}

}  // namespace leeway::seal
