#include "transport/inproc/inproc_transport.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "base/contracts.h"
#include "transport/inproc/byte_ring.h"
#include "transport/slice_cursor.h"
#include "transport/train_limits.h"

namespace leeway::transport {
namespace {

// One receive() lends at most this many datagrams.
constexpr std::size_t kLentMax = 64;

// Returns the bytes for the queue and for kLentMax lent datagrams, so that lending does not shrink
// the queue. One more record makes up for the memory that stays unused at the end, where a record
// does not fit and starts at the front.
std::size_t ring_bytes(const InprocOptions& options) {
  const std::size_t datagrams =
      std::max<std::size_t>(options.receive_buffer_bytes / options.datagram_bytes, 1);
  return (datagrams + kLentMax + 1) * ByteRing::record_bytes(options.datagram_bytes);
}

// The queue of a rank: any thread puts datagrams in, and one thread takes them out.
class Inbox {
 public:
  explicit Inbox(const InprocOptions& options)
      : datagram_bytes_max_(options.datagram_bytes), ring_(ring_bytes(options)) {}

  void deliver(Rank from, const Train& train) {
    {
      const std::lock_guard lock(mutex_);
      SliceCursor cursor(train.slices);
      for (std::size_t offset = 0; offset < train.total_bytes; offset += train.segment_bytes) {
        deliver_one(from, cursor, std::min(train.segment_bytes, train.total_bytes - offset));
      }
    }
    arrived_.notify_one();
  }

  std::size_t take(std::span<Received> out) {
    const std::lock_guard lock(mutex_);
    ring_.release_read();
    const std::size_t wanted = std::min(out.size(), kLentMax);
    std::size_t filled = 0;
    while (filled < wanted) {
      const auto datagram = ring_.read();
      if (!datagram) break;
      out[filled++] = *datagram;
    }
    return filled;
  }

  void wait(Duration timeout) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, timeout, [this] { return called_ || ring_.unread(); });
    called_ = false;
  }

  void wake() {
    {
      const std::lock_guard lock(mutex_);
      called_ = true;
    }
    arrived_.notify_one();
  }

  void add_to(TransportCounters& counters) {
    const std::lock_guard lock(mutex_);
    counters.kernel_drops = full_;
    counters.oversized = oversized_;
  }

 private:
  void deliver_one(Rank from, SliceCursor& cursor, std::size_t bytes) {
    const bool fits = bytes <= datagram_bytes_max_;
    const auto room = fits ? ring_.append(from, bytes) : std::nullopt;
    if (room) {
      cursor.copy_to(*room);
      return;
    }
    ++(fits ? full_ : oversized_);
    cursor.skip(bytes);
  }

  const std::size_t datagram_bytes_max_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  ByteRing ring_;
  bool called_ = false;
  std::uint64_t full_ = 0;
  std::uint64_t oversized_ = 0;
};

using Network = std::vector<std::unique_ptr<Inbox>>;

class InprocTransport final : public DatagramTransport {
 public:
  InprocTransport(std::shared_ptr<const Network> network, Rank self, std::size_t datagram_bytes,
                  std::size_t receive_buffer_bytes)
      : network_(std::move(network)),
        inbox_(*(*network_)[self]),
        self_(self),
        limits_{datagram_bytes,  kTrainBytesMax,       kTrainDatagramsMax,
                kTrainSlicesMax, receive_buffer_bytes, /*multicast=*/true} {}

  std::string_view name() const override { return "inproc"; }
  const TransportLimits& limits() const override { return limits_; }

  std::size_t send(std::span<const Train> trains) override {
    for (const Train& train : trains) {
      LEEWAY_ASSERT((train.to < network_->size() || train.to == kEveryRank) &&
                    train.segment_bytes > 0);
      const bool every = train.to == kEveryRank;
      const std::size_t first = every ? 0 : train.to;
      const std::size_t last = every ? network_->size() : first + 1;
      for (std::size_t to = first; to < last; ++to) {
        if (to != self_ || !every) (*network_)[to]->deliver(self_, train);
      }
      counters_.datagrams_sent += datagrams_of(train);
      counters_.bytes_sent += train.total_bytes;
    }
    ++counters_.send_calls;
    return trains.size();
  }

  std::size_t receive(std::span<Received> out) override {
    const std::size_t filled = inbox_.take(out);
    ++counters_.receive_calls;
    counters_.datagrams_received += filled;
    for (const Received& datagram : out.first(filled))
      counters_.bytes_received += datagram.bytes.size();
    return filled;
  }

  void wait(Duration timeout) override { inbox_.wait(timeout); }
  void wake() override { inbox_.wake(); }

  TransportCounters counters() const override {
    TransportCounters counters = counters_;
    inbox_.add_to(counters);
    return counters;
  }

 private:
  const std::shared_ptr<const Network> network_;
  Inbox& inbox_;
  const Rank self_;
  const TransportLimits limits_;
  TransportCounters counters_;
};

}  // namespace

std::vector<std::unique_ptr<DatagramTransport>> make_inproc_group(int size,
                                                                  const InprocOptions& options) {
  LEEWAY_ASSERT(size > 0 && options.datagram_bytes > 0);
  auto network = std::make_shared<Network>();
  for (int i = 0; i < size; ++i) network->push_back(std::make_unique<Inbox>(options));
  std::vector<std::unique_ptr<DatagramTransport>> group;
  group.reserve(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    group.push_back(std::make_unique<InprocTransport>(
        network, static_cast<Rank>(i), options.datagram_bytes, options.receive_buffer_bytes));
  }
  return group;
}

}  // namespace leeway::transport
