#include "rendezvous/store_frame.h"

#include <algorithm>
#include <cstring>

#include "leeway/rendezvous.h"
#include "rendezvous/store_table.h"

namespace leeway::rendezvous {
namespace {

using Header = std::array<std::byte, kFrameHeaderBytes>;

void put_u32(std::uint32_t value, std::byte* at) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<std::byte>(value >> (24 - 8 * i));
}

std::uint32_t u32_at(ByteSpan bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[offset + i]);
  return value;
}

// Flags of a put.
constexpr std::byte kWithConnection{1};
constexpr std::byte kQuiet{2};
constexpr std::byte kPutFlags = kWithConnection | kQuiet;

// WIRE 7.14. Returns false if no frame of ours has such a header.
bool is_request_header(ByteSpan header, std::size_t key_bytes, std::size_t value_bytes) {
  const auto operation = std::to_integer<std::uint8_t>(header[0]);
  if (operation < static_cast<std::uint8_t>(StoreOperation::put) ||
      operation > static_cast<std::uint8_t>(StoreOperation::cancel))
    return false;
  const bool is_put = operation == static_cast<std::uint8_t>(StoreOperation::put);
  const bool is_cancel = operation == static_cast<std::uint8_t>(StoreOperation::cancel);
  if (key_bytes > Rendezvous::kKeyBytesMax || is_cancel != (key_bytes == 0)) return false;
  if (is_put)
    return (header[1] & ~kPutFlags) == std::byte{0} && value_bytes <= Rendezvous::kValueBytesMax;
  return header[1] == std::byte{0} && value_bytes == 0 && u32_at(header, 12) == 0;
}

bool is_answer_header(ByteSpan header, std::size_t value_bytes) {
  const auto outcome = std::to_integer<std::uint8_t>(header[0]);
  if (outcome > static_cast<std::uint8_t>(StoreOutcome::full)) return false;
  if (header[1] != std::byte{0} || header[2] != std::byte{0} || header[3] != std::byte{0} ||
      u32_at(header, 12) != 0)
    return false;
  const bool is_found = outcome == static_cast<std::uint8_t>(StoreOutcome::found);
  return is_found ? value_bytes <= Rendezvous::kValueBytesMax : value_bytes == 0;
}

constexpr std::size_t kRefused = SIZE_MAX;

}  // namespace

void append_request(const StoreRequest& request, std::string& out) {
  Header header{};
  header[0] = static_cast<std::byte>(request.operation);
  if (request.with_connection) header[1] |= kWithConnection;
  if (request.quiet) header[1] |= kQuiet;
  header[2] = static_cast<std::byte>(request.key.size() >> 8);
  header[3] = static_cast<std::byte>(request.key.size());
  put_u32(static_cast<std::uint32_t>(request.value.size()), &header[4]);
  put_u32(request.number, &header[8]);
  put_u32(request.readers, &header[12]);
  out.append(reinterpret_cast<const char*>(header.data()), header.size());
  out.append(request.key);
  out.append(reinterpret_cast<const char*>(request.value.data()), request.value.size());
}

Header answer_header(StoreOutcome outcome, std::uint32_t number, std::size_t value_bytes) {
  Header header{};
  header[0] = static_cast<std::byte>(outcome);
  put_u32(static_cast<std::uint32_t>(value_bytes), &header[4]);
  put_u32(number, &header[8]);
  return header;
}

bool FrameReader::feed_requests(ByteSpan bytes,
                                const std::function<void(const StoreRequest&)>& take) {
  return feed(bytes, [&take](ByteSpan frame) -> std::size_t {
    if (frame.size() < kFrameHeaderBytes) return 0;
    const std::size_t key_bytes = u32_at(frame, 0) & 0xFFFF;
    const std::size_t value_bytes = u32_at(frame, 4);
    if (!is_request_header(frame.first(kFrameHeaderBytes), key_bytes, value_bytes)) return kRefused;
    const std::size_t total = kFrameHeaderBytes + key_bytes + value_bytes;
    if (frame.size() < total) return 0;
    StoreRequest request;
    request.operation = static_cast<StoreOperation>(frame[0]);
    request.with_connection = (frame[1] & kWithConnection) != std::byte{0};
    request.quiet = (frame[1] & kQuiet) != std::byte{0};
    request.number = u32_at(frame, 8);
    request.readers = u32_at(frame, 12);
    request.key = {reinterpret_cast<const char*>(frame.data()) + kFrameHeaderBytes, key_bytes};
    request.value = frame.subspan(kFrameHeaderBytes + key_bytes, value_bytes);
    if (key_bytes != 0 && !is_key(request.key)) return kRefused;
    take(request);
    return total;
  });
}

bool FrameReader::feed_answers(ByteSpan bytes,
                               const std::function<void(const StoreAnswer&)>& take) {
  return feed(bytes, [&take](ByteSpan frame) -> std::size_t {
    if (frame.size() < kFrameHeaderBytes) return 0;
    const std::size_t value_bytes = u32_at(frame, 4);
    if (!is_answer_header(frame.first(kFrameHeaderBytes), value_bytes)) return kRefused;
    const std::size_t total = kFrameHeaderBytes + value_bytes;
    if (frame.size() < total) return 0;
    take({static_cast<StoreOutcome>(frame[0]), u32_at(frame, 8),
          frame.subspan(kFrameHeaderBytes, value_bytes)});
    return total;
  });
}

bool FrameReader::feed(ByteSpan bytes, const Step& step) {
  if (failed_) return false;
  const bool in_place = buffer_.empty();
  if (!in_place) buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  const ByteSpan all = in_place ? bytes : ByteSpan(buffer_);
  std::size_t used = 0;
  while (used < all.size()) {
    const ByteSpan rest = all.subspan(used);
    std::size_t taken = 0;
    if (!greeted_) {
      const std::size_t compared = std::min(rest.size(), kGreetingBytes);
      failed_ = !std::equal(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(compared),
                            kGreeting.begin());
      greeted_ = !failed_ && compared == kGreetingBytes;
      taken = greeted_ ? kGreetingBytes : 0;
    } else {
      taken = step(rest);
      failed_ = taken == kRefused;
    }
    if (failed_ || taken == 0) break;
    used += taken;
  }
  if (failed_) {
    buffer_.clear();
    return false;
  }
  if (in_place) {
    buffer_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(used), bytes.end());
  } else {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(used));
    if (buffer_.empty()) buffer_.shrink_to_fit();
  }
  return true;
}

}  // namespace leeway::rendezvous
