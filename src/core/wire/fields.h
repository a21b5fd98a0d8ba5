// Reads and writes scalars in the byte order of datagrams, the prefix, and its checksum. Only
// packet.cc and report.cc may include this file.
#pragma once

#include <bit>
#include <cstring>

#include "base/contracts.h"
#include "base/crc32c.h"
#include "wire/packet.h"

namespace leeway::wire {

static_assert(std::endian::native == std::endian::little,
              "scalars are stored as they lie in memory; a big-endian port needs byte swaps in "
              "put() and get()");

inline constexpr std::size_t kChecksumOffset = 4;
// Flags in the prefix's type byte. They stand for !Prefix::payload_summed and Prefix::asks.
inline constexpr std::uint8_t kPayloadNotSummed = 0x80;
inline constexpr std::uint8_t kAsks = 0x40;

// Sequential little-endian writer into a buffer whose size the caller has checked.
class Writer {
 public:
  explicit Writer(MutableByteSpan out) : out_(out) {}
  template <typename T>
  void put(T value) {
    LEEWAY_ASSERT(at_ + sizeof(T) <= out_.size());
    std::memcpy(out_.data() + at_, &value, sizeof(T));
    at_ += sizeof(T);
  }
  std::size_t written() const { return at_; }

 private:
  MutableByteSpan out_;
  std::size_t at_ = 0;
};

// Sequential reader. Reading past the end yields zeros and clears ok().
class Reader {
 public:
  explicit Reader(ByteSpan in) : in_(in) {}
  template <typename T>
  T get() {
    T value{};
    if (in_.size() - at_ < sizeof(T)) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, in_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  bool ok() const { return ok_; }
  ByteSpan rest() const { return in_.subspan(at_); }

 private:
  ByteSpan in_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

// WIRE 1.2: CRC32C over payload, then the header bytes before and after the checksum field.
inline std::uint32_t checksum(ByteSpan header, std::uint32_t payload_crc) {
  std::uint32_t crc = crc32c(header.first(kChecksumOffset), payload_crc);
  return crc32c(header.subspan(kChecksumOffset + sizeof(std::uint32_t)), crc);
}

inline void write_prefix(Writer& writer, const Prefix& prefix) {
  writer.put(kMagic);
  writer.put(kVersion);
  writer.put(static_cast<std::uint8_t>(static_cast<std::uint8_t>(prefix.type) |
                                       (prefix.payload_summed ? 0 : kPayloadNotSummed) |
                                       (prefix.asks ? kAsks : 0)));
  writer.put(std::uint32_t{0});  // checksum, filled in by seal()
  writer.put(prefix.epoch);
  writer.put(prefix.source);
  writer.put(prefix.destination);
  writer.put(prefix.sequence);
}

inline void seal(MutableByteSpan header, std::uint32_t payload_crc) {
  const std::uint32_t crc = checksum(header, payload_crc);
  std::memcpy(header.data() + kChecksumOffset, &crc, sizeof(crc));
}

// Decodes an enumerator. Returns false if the byte is larger than `last`, the highest enumerator.
template <typename Enum>
bool read_enum(std::uint8_t byte, Enum last, Enum& value) {
  value = static_cast<Enum>(byte);
  return byte <= static_cast<std::uint8_t>(last);
}

// Refuses Codec::automatic, which is never sent: ranks agree on a codec before an operation begins.
inline bool read_codec(Reader& reader, Codec& codec) {
  return read_enum(reader.get<std::uint8_t>(), Codec::sparse, codec);
}

}  // namespace leeway::wire
