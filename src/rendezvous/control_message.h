// Rendezvous messages on a TCP connection: a 32-bit big-endian length, then a Protobuf message that
// begins with a magic number. Every byte is taken from a stranger until the magic says otherwise;
// no length is believed before it is checked.
#pragma once

#include <array>
#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/limits.h"
#include "control.pb.h"
#include "leeway/status.h"

namespace leeway::rendezvous {

inline constexpr std::uint32_t kControlMagic = 0x4C575256;  // "LWRV"
inline constexpr std::size_t kLengthPrefixBytes = 4;

// The bytes of a message with its prefix. A Hello must be within limits::kHelloBytesMax, a Welcome
// within kWelcomeBytesMax.
std::string frame_of(const google::protobuf::MessageLite& message);

struct IncomingFrame {
  std::array<unsigned char, kLengthPrefixBytes> prefix{};
  std::string body;
};
enum class FrameOutcome : std::uint8_t { complete, closed, oversized };

// Reads one frame with a message of at most `bytes_max`; `frame` and `socket` must live until
// `done` is called. A connection that ends early is `closed`.
void async_read_frame(asio::ip::tcp::socket& socket, IncomingFrame& frame, std::size_t bytes_max,
                      const std::function<void(FrameOutcome)>& done);

// A Hello whose fields can be used without further checks of form: magic right, numbers in the
// ranges of their types, addresses of 0, 4 or 16 bytes, port not 0, few offers of transports that
// exist. A Hello of another protocol version is returned with only its version, library version and
// rank meaning anything. Nothing: not a message of ours.
std::optional<control::Hello> parse_hello(const std::string& body);

// A Welcome with exactly one outcome; a group in it is complete: `size` members in each lane,
// usable addresses, epoch not 0, datagram sizes within limits, a multicast address that is one.
std::optional<control::Welcome> parse_welcome(const std::string& body, int size);

control::Welcome rejection_of(const Status& reason);
Status status_of(const control::Rejection& rejection);

}  // namespace leeway::rendezvous
