#include "transport/shm/ring.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/contracts.h"
#include "transport/slice_cursor.h"

namespace leeway::transport {
namespace {

// Copies bytes that the peer can change into memory of our own, exactly once. The fence keeps the
// compiler from reading the shared bytes again later.
template <typename T>
T copied_out(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  std::atomic_signal_fence(std::memory_order_acq_rel);
  return value;
}

}  // namespace

bool RingWriter::put(const Train& train) {
  LEEWAY_ASSERT(train.total_bytes <= kTrainBytesMax && train.segment_bytes > 0 &&
                datagrams_of(train) <= kTrainDatagramsMax);
  std::byte* const place = place_for({static_cast<std::uint32_t>(RecordKind::train),
                                      static_cast<std::uint32_t>(train.total_bytes),
                                      static_cast<std::uint32_t>(train.segment_bytes), 0});
  if (place == nullptr) return false;
  SliceCursor(train.slices).copy_to({place, train.total_bytes});
  return true;
}

bool RingWriter::put(RecordKind kind, std::uint64_t nonce) {
  std::byte* const place = place_for({static_cast<std::uint32_t>(kind), sizeof(nonce), 0, 0});
  if (place == nullptr) return false;
  std::memcpy(place, &nonce, sizeof(nonce));
  return true;
}

// Writes the record's head. Returns where the record's bytes go, or null if there is no room.
std::byte* RingWriter::place_for(const RecordHead& head) {
  const std::size_t bytes = record_bytes(head.bytes);
  if (!has_room(bytes)) return nullptr;
  std::byte* const record = memory_.data + (written_ & (memory_.bytes - 1));
  std::memcpy(record, &head, sizeof(head));
  written_ += bytes;
  return record + sizeof(head);
}

bool RingWriter::has_room(std::size_t bytes) {
  const auto fits = [&] { return !broken_ && written_ - released_ + bytes <= memory_.bytes; };
  if (fits()) return true;
  look_at_reader();  // only when the ring looks full, because it fetches the reader's cache line
  return fits();
}

void RingWriter::look_at_reader() {
  const std::uint64_t said = memory_.head->released.load(std::memory_order_acquire);
  // A correct reader never moves its position back, or beyond the records that it was shown. This
  // reader did, so the ring is broken.
  if (said - released_ > shown_ - released_) {
    broken_ = true;
    return;
  }
  released_ = said;
}

// The writer first shows records, then asks reader_sleep(). A reader first says that it sleeps,
// then looks for records. Each side has a fence between its two steps. So the writer sees that the
// reader sleeps, or the reader sees the records.
void RingWriter::publish() {
  if (shown_ == written_) return;
  memory_.head->written.store(written_, std::memory_order_release);
  shown_ = written_;
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

std::uint32_t RingWriter::reader_sleep() const {
  const std::uint32_t sleep = memory_.head->reader_sleeps.load(std::memory_order_relaxed);
  return sleep % 2 == 1 ? sleep : 0;
}

bool RingWriter::unread() {
  look_at_reader();
  return !broken_ && released_ != shown_;
}

bool RingWriter::begin_waiting(std::size_t bytes) {
  memory_.head->writer_waits.store(++waits_, std::memory_order_relaxed);
  LEEWAY_ASSERT(waits_ % 2 == 1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!has_room(record_bytes(bytes)) && !broken_) return true;
  end_waiting();
  return false;
}

void RingWriter::end_waiting() {
  if (waits_ % 2 == 1) memory_.head->writer_waits.store(++waits_, std::memory_order_relaxed);
}

std::size_t RingReader::read(Rank from, std::span<Received> out, std::byte* copies) {
  if (broken_ || out.empty()) return 0;
  // Reads the writer's position only once. Otherwise a writer that keeps moving it could hold this
  // loop here for ever.
  const std::uint64_t written = memory_.head->written.load(std::memory_order_acquire);
  if (written - read_ > memory_.bytes || written % kRecordGrain != 0) {
    break_off();
    return 0;
  }
  std::size_t filled = 0;
  while (filled < out.size() && (train_ != nullptr || (read_ != written && open_record(written))))
    filled += cut(from, out.subspan(filled), copies + filled * kCopiedBytesMax);
  return filled;
}

// Reads the head of the next record. Returns false if the head breaks the ring. Takes a nonce out
// at once, but leaves a train to cut().
bool RingReader::open_record(std::uint64_t written) {
  std::byte* const record = memory_.data + (read_ & (memory_.bytes - 1));
  const auto head = copied_out<RecordHead>(record);
  if (head.bytes > kTrainBytesMax || record_bytes(head.bytes) > written - read_) return break_off();
  switch (static_cast<RecordKind>(head.kind)) {
    case RecordKind::train:
      if (head.bytes == 0 || head.segment_bytes == 0 || head.segment_bytes > datagram_bytes_max_ ||
          head.bytes > kTrainDatagramsMax * std::size_t{head.segment_bytes})
        return break_off();
      train_ = record + sizeof(head);
      train_bytes_ = head.bytes;
      segment_bytes_ = head.segment_bytes;
      offset_ = 0;
      break;
    case RecordKind::challenge:
    case RecordKind::echo: {
      if (head.bytes != sizeof(std::uint64_t)) return break_off();
      const auto nonce = copied_out<std::uint64_t>(record + sizeof(head));
      (head.kind == static_cast<std::uint32_t>(RecordKind::echo) ? echo_ : challenge_) = nonce;
      break;
    }
    default:
      return break_off();
  }
  read_ += record_bytes(head.bytes);
  return true;
}

std::size_t RingReader::cut(Rank from, std::span<Received> out, std::byte* copies) {
  std::size_t filled = 0;
  while (train_ != nullptr && filled < out.size()) {
    const std::size_t bytes = std::min(segment_bytes_, train_bytes_ - offset_);
    std::byte* datagram = train_ + offset_;
    if (bytes <= kCopiedBytesMax) {
      std::byte* const copy = copies + filled * kCopiedBytesMax;
      std::memcpy(copy, datagram, bytes);
      datagram = copy;
    }
    out[filled++] = {from, {datagram, bytes}};
    offset_ += bytes;
    if (offset_ == train_bytes_) train_ = nullptr;
  }
  return filled;
}

// Gives back the records that were read. A train of which read() has handed out only some datagrams
// is not given back yet.
bool RingReader::release() {
  const std::uint64_t done = train_ == nullptr ? read_ : read_ - record_bytes(train_bytes_);
  if (broken_ || done == released_) return false;
  released_ = done;
  memory_.head->released.store(done, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return true;
}

std::uint32_t RingReader::writer_wait() const {
  const std::uint32_t wait = memory_.head->writer_waits.load(std::memory_order_relaxed);
  return wait % 2 == 1 ? wait : 0;
}

bool RingReader::begin_sleep() {
  memory_.head->reader_sleeps.store(++sleeps_, std::memory_order_relaxed);
  LEEWAY_ASSERT(sleeps_ % 2 == 1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!unread()) return true;
  end_sleep();
  return false;
}

void RingReader::end_sleep() {
  if (sleeps_ % 2 == 1) memory_.head->reader_sleeps.store(++sleeps_, std::memory_order_relaxed);
}

bool RingReader::unread() const {
  return !broken_ &&
         (train_ != nullptr || memory_.head->written.load(std::memory_order_acquire) != read_);
}

bool RingReader::break_off() {
  broken_ = true;
  train_ = nullptr;
  return false;
}

}  // namespace leeway::transport
