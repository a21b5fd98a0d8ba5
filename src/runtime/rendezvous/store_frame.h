// Frames of a connection between a TcpRendezvous and its server: proto/README.md, 7.14. This file
// handles bytes only, no sockets. No length is believed before it is checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "leeway/types.h"

namespace leeway::rendezvous {

// The first bytes that each side sends: "LWRS" and the version of the frames.
inline constexpr std::size_t kGreetingBytes = 8;
inline constexpr std::array<std::byte, kGreetingBytes> kGreeting = {
    std::byte{'L'}, std::byte{'W'}, std::byte{'R'}, std::byte{'S'},
    std::byte{0},   std::byte{1},   std::byte{0},   std::byte{0}};
inline constexpr std::size_t kFrameHeaderBytes = 16;

enum class StoreOperation : std::uint8_t { put = 1, get, look, erase, cancel };

struct StoreRequest {
  StoreOperation operation = StoreOperation::look;
  bool with_connection = false;  // put: the key goes when the connection does
  bool quiet = false;            // put: an answer only if there is no room
  std::uint32_t number = 0;      // the answer has the same
  std::uint32_t readers = 0;     // put: see StoreTable::put()
  std::string_view key;          // empty for cancel, whose number is that of the get
  ByteSpan value;                // put only
};

// A put is answered by done or full, an erase by done, a get by found, a look by found or absent. A
// cancel has no answer.
enum class StoreOutcome : std::uint8_t { done = 0, found, absent, full };

struct StoreAnswer {
  StoreOutcome outcome = StoreOutcome::done;
  std::uint32_t number = 0;
  ByteSpan value;
};

void append_request(const StoreRequest& request, std::string& out);
// The header of an answer; the value follows it.
std::array<std::byte, kFrameHeaderBytes> answer_header(StoreOutcome outcome, std::uint32_t number,
                                                       std::size_t value_bytes);

// Takes the bytes of one connection as they come and hands on whole frames. Keeps at most one
// incomplete frame.
class FrameReader {
 public:
  // Hand whole frames to `take`. Return false if the bytes are none that the other side may send,
  // and on every later call.
  bool feed_requests(ByteSpan bytes, const std::function<void(const StoreRequest&)>& take);
  bool feed_answers(ByteSpan bytes, const std::function<void(const StoreAnswer&)>& take);

  bool is_greeted() const { return greeted_; }
  // Returns the number of bytes that wait for the rest of their frame or greeting.
  std::size_t buffered() const { return buffer_.size(); }

 private:
  // Hands on the frame at the front of `bytes`. Returns its length, or 0 if it is incomplete.
  using Step = std::function<std::size_t(ByteSpan bytes)>;
  bool feed(ByteSpan bytes, const Step& step);

  std::vector<std::byte> buffer_;
  bool greeted_ = false;
  bool failed_ = false;
};

}  // namespace leeway::rendezvous
