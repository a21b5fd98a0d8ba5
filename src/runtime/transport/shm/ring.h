// A ring of trains in memory that two processes share: one process writes, the other reads.
//
// The peer may write anything into this memory at any time. So each side keeps its own position in
// memory of its own. It checks the peer's position and the heads of records only after it has
// copied them. A ring that breaks a rule is broken for good: neither read nor written any more.
// There are no locks, so a peer that dies only leaves a ring that stands still.
//
// WIRE 11 has the layout. Nothing here allocates, sleeps or calls the system.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "leeway/transport.h"
#include "transport/train_limits.h"

namespace leeway::transport {

// The shared positions of one ring. Writer and reader each have a pair of cache lines to
// themselves, since processors fetch lines in pairs.
struct RingHead {
  // Number of bytes that were ever written and shown to the reader.
  alignas(128) std::atomic<std::uint64_t> written;
  std::atomic<std::uint32_t> writer_waits;  // odd while the writer waits for room
  // Number of bytes that the reader has ever given back, for the writer to use again.
  alignas(128) std::atomic<std::uint64_t> released;
  std::atomic<std::uint32_t> reader_sleeps;  // odd while the reader sleeps
};
static_assert(sizeof(RingHead) == 256);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// One ring as this process maps it. The `bytes` of data are mapped twice, one behind the other: a
// record that begins near the end goes on in the second mapping, so no record is cut.
struct RingMemory {
  RingHead* head = nullptr;
  std::byte* data = nullptr;
  std::size_t bytes = 0;  // always a power of two
};

// Kind of a record. The numbers differ in many bits, so that a stray write does not turn one kind
// into another.
enum class RecordKind : std::uint32_t {
  train = 0x6E617274,      // datagrams
  challenge = 0x6C616863,  // a nonce of the writer
  echo = 0x6F686365,       // the reader's nonce, sent back
};

// The head in front of each record.
struct RecordHead {
  std::uint32_t kind = 0;
  std::uint32_t bytes = 0;          // bytes of the record after this head
  std::uint32_t segment_bytes = 0;  // length of a train's datagrams; 0 in other records
  std::uint32_t reserved = 0;
};
static_assert(sizeof(RecordHead) == 16);

// Records begin at multiples of this size, a cache line.
inline constexpr std::size_t kRecordGrain = 64;
constexpr std::size_t record_bytes(std::size_t bytes) {
  return (sizeof(RecordHead) + bytes + kRecordGrain - 1) / kRecordGrain * kRecordGrain;
}

// Least size of a ring. It holds two trains of the greatest length, so the writer can write one
// while the reader reads the other.
inline constexpr std::size_t kRingBytesMin = std::size_t{128} * 1024;
static_assert(2 * record_bytes(kTrainBytesMax) <= kRingBytesMin);
inline constexpr std::size_t kRingBytesMax = std::size_t{1} << 30;

// The writing side. Used by one thread at a time.
class RingWriter {
 public:
  explicit RingWriter(const RingMemory& memory) : memory_(memory) {}

  // Appends a record. Returns false if there is no room, or the ring is broken.
  bool put(const Train& train);
  bool put(RecordKind kind, std::uint64_t nonce);

  // Shows the reader all records that were put. The caller must then ask reader_sleep(), and wake a
  // reader that sleeps.
  void publish();

  // Returns the number of the reader's current sleep, or 0 while the reader is awake. Each sleep
  // has its own number, so that the caller wakes the reader once for each.
  std::uint32_t reader_sleep() const;
  // Returns true if the reader has not given back all records that it was shown.
  bool unread();

  // Call these before and after waiting for room for a train of `bytes` bytes. begin_waiting()
  // returns false if there is room already, or if the ring is broken.
  bool begin_waiting(std::size_t bytes);
  void end_waiting();
  // Returns the reader's position as last seen. It grows while the reader works on the ring.
  std::uint64_t released() const { return released_; }

  bool broken() const { return broken_; }

 private:
  std::byte* place_for(const RecordHead& head);
  bool has_room(std::size_t bytes);
  void look_at_reader();

  const RingMemory memory_;
  std::uint64_t written_ = 0;   // bytes ever put
  std::uint64_t shown_ = 0;     // bytes of `written_` that were published
  std::uint64_t released_ = 0;  // position as the reader said last
  std::uint32_t waits_ = 0;     // odd while waiting
  bool broken_ = false;
};

// The reading side. Used by one thread at a time.
class RingReader {
 public:
  // Datagrams of at most kCopiedBytesMax are copied out of the shared memory, so that the peer
  // cannot change a control datagram between its check and its use. Longer datagrams are data:
  // their header is read once, and their payload is copied or summed once.
  static constexpr std::size_t kCopiedBytesMax = 1024;

  // A train with datagrams longer than `datagram_bytes_max` breaks the ring.
  RingReader(const RingMemory& memory, std::size_t datagram_bytes_max)
      : memory_(memory), datagram_bytes_max_(datagram_bytes_max) {}

  // Fills `out` with datagrams of `from` and returns how many. Short ones are copied to `copies`,
  // which has kCopiedBytesMax bytes for each element of `out`. Others are lent until release().
  std::size_t read(Rank from, std::span<Received> out, std::byte* copies);
  // Gives back all that read() has lent. Returns true if there was anything.
  bool release();

  // Returns the number of the writer's current wait for room, or 0 if the writer does not wait.
  // Call it after release().
  std::uint32_t writer_wait() const;

  // These return the latest nonces that read() found. Each nonce is returned once.
  bool has_nonce() const { return challenge_ || echo_; }
  std::optional<std::uint64_t> take_challenge() { return std::exchange(challenge_, std::nullopt); }
  std::optional<std::uint64_t> take_echo() { return std::exchange(echo_, std::nullopt); }

  // Call these before and after sleeping. begin_sleep() returns false if there is something to
  // read.
  bool begin_sleep();
  void end_sleep();
  bool unread() const;

  bool broken() const { return broken_; }

 private:
  bool open_record(std::uint64_t written);
  std::size_t cut(Rank from, std::span<Received> out, std::byte* copies);
  bool break_off();

  const RingMemory memory_;
  const std::size_t datagram_bytes_max_;
  std::uint64_t read_ = 0;      // where the next record begins
  std::uint64_t released_ = 0;  // position as the writer was told
  std::uint32_t sleeps_ = 0;    // odd while asleep
  bool broken_ = false;
  // The train from which datagrams are being taken. The datagrams lie in the ring; the other fields
  // are checked copies from its head.
  std::byte* train_ = nullptr;  // its bytes; null between trains
  std::size_t train_bytes_ = 0;
  std::size_t segment_bytes_ = 0;
  std::size_t offset_ = 0;
  std::optional<std::uint64_t> challenge_;
  std::optional<std::uint64_t> echo_;
};

}  // namespace leeway::transport
