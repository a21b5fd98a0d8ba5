// A bounded queue of datagrams in one piece of memory, whose front can be read in place.
//
// Records lie one after the other. A record that does not fit before the end of the memory starts
// at the front. Reading and releasing are separate steps, so that a reader can work on records
// while a writer appends behind them. Not thread-safe; the owner locks (inproc_transport.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "leeway/transport.h"

namespace leeway::transport {

class ByteRing {
 public:
  // Allocates `capacity` bytes for records, their headers and padding included.
  explicit ByteRing(std::size_t capacity);

  // Returns how many bytes of the ring a datagram needs.
  static std::size_t record_bytes(std::size_t datagram_bytes);

  // Appends a record and returns its memory for the caller to fill. Returns nullopt if the ring is
  // full.
  std::optional<MutableByteSpan> append(Rank from, std::size_t datagram_bytes);

  // Returns the next unread record, or nullopt when all are read. The record's memory stays valid
  // until release_read().
  std::optional<Received> read();
  // Lets append() use the memory of all records that were read so far.
  void release_read();

  bool unread() const { return read_ != write_; }

 private:
  struct Header {
    std::uint32_t datagram_bytes = 0;
    Rank from = kNoRank;
    bool skip_to_front = false;  // padding up to the end of the memory
  };

  std::size_t place(std::uint64_t position) const { return position % memory_.size(); }
  void write_header(std::uint64_t position, const Header& header);
  Header header_at(std::uint64_t position) const;

  std::vector<std::byte> memory_;
  // Numbers of bytes that were ever written, read and released. place() turns such a number into an
  // offset in the memory.
  std::uint64_t write_ = 0;
  std::uint64_t read_ = 0;
  std::uint64_t released_ = 0;
};

}  // namespace leeway::transport
