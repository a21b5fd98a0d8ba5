// A bounded queue of datagrams in one piece of memory, whose front can be read in place.
//
// Records lie one after the other and never wrap: one that does not fit before the end starts at
// the front. Reading and releasing are separate steps, so that a reader can work on records while a
// writer appends behind them. Not thread-safe; the owner locks (inproc_transport.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "leeway/transport.h"

namespace leeway::transport {

class ByteRing {
 public:
  // Makes room for records of `capacity` bytes altogether, including headers and padding.
  explicit ByteRing(std::size_t capacity);

  // Bytes that a datagram takes in the ring.
  static std::size_t record_bytes(std::size_t datagram_bytes);

  // Appends a record and returns its memory for the caller to fill. Returns nullopt if the ring is
  // full.
  std::optional<MutableByteSpan> append(Rank from, std::size_t datagram_bytes);

  // Returns the next unread record, or nullopt when all are read. Its memory stays until
  // release_read().
  std::optional<Received> read();
  // Gives the memory of all records read so far back to append().
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
  // Counts of all bytes ever written, read and released. place() maps a count to an offset.
  std::uint64_t write_ = 0;
  std::uint64_t read_ = 0;
  std::uint64_t released_ = 0;
};

}  // namespace leeway::transport
