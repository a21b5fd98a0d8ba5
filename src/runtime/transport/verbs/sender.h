// The sending half of the verbs transport: trains become chains of send requests.
//
// The device gathers a datagram's pieces from registered memory. Small datagrams go inline with
// their request. Datagrams in unregistered memory, or in too many pieces, are copied into slots of
// our own. One ibv_post_send() takes all trains of a send(). Completions are asked for at the end
// of a train that is read in place, and at the end of a chain.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/transport.h"
#include "transport/slice_cursor.h"
#include "transport/verbs/device.h"
#include "transport/verbs/memory.h"

namespace leeway::transport {

class VerbsSender {
 public:
  // Where a rank's datagrams go. The handle of this rank itself is null.
  struct Destination {
    ibv_ah* handle = nullptr;
    std::uint32_t queue_pair = 0;
    std::uint32_t queue_key = 0;
  };
  struct Setup {
    ibv_qp* queue_pair = nullptr;
    ibv_cq* completions = nullptr;
    QueueSizes sizes;
    std::size_t datagram_bytes = 0;
    std::byte* slots = nullptr;  // registered: sizes.send_entries datagrams
    std::uint32_t slots_key = 0;
  };

  // Counts its work in `counters`.
  VerbsSender(const Setup& setup, const Regions& regions, TransportCounters& counters);

  // Sets the destination of every rank; that of kEveryRank is given with set_group().
  void set_destinations(std::vector<Destination> by_rank) { destinations_ = std::move(by_rank); }
  void set_group(const Destination& group) { group_ = group; }

  // The same as DatagramTransport::send() and borrowed().
  std::size_t send(std::span<const Train> trains);
  std::size_t borrowed();

  // Returns true if the queue was full at the last send(), or if the device still reads a train's
  // memory. In both cases wait() must end at the next completion.
  bool waits() const { return full_ || trains_settled_ < trains_posted_; }
  // Takes the completions that have come. Returns true if there were any.
  bool collect();
  // Takes completions until everything that was sent is out, at most for `limit`.
  void drain(Duration limit);

  // Returns why the queue pair cannot be used any more (a request failed), or nullptr while it can.
  const char* failure() const { return failure_; }
  // Call it when the device is gone: from then on all trains are taken and dropped.
  void abandon();

 private:
  struct TrainEnd {
    std::uint64_t posted = 0;  // number of datagrams that were posted up to the train's last
    bool reads = false;        // the device reads the train's memory
  };

  void settle();
  std::size_t free_entries() const { return sizes_.send_entries - (posted_ - completed_); }
  const Destination& destination_of(Rank to) const;
  void lay_out(const Train& train);
  bool gather(ibv_send_wr& request, SliceCursor& cursor, std::size_t bytes);
  void post(std::uint64_t first, std::span<const Train> trains);
  std::size_t drop(std::span<const Train> trains);
  ibv_send_wr& request_of(std::uint64_t number) { return requests_[number % requests_.size()]; }

  ibv_qp* queue_pair_;
  ibv_cq* completions_;
  const QueueSizes sizes_;
  const std::size_t datagram_bytes_;
  std::byte* const slots_;
  const std::uint32_t slots_key_;
  const Regions& regions_;

  std::vector<Destination> destinations_;
  Destination group_;
  std::vector<ibv_send_wr> requests_;  // a ring: request n of all lies at n modulo the size
  std::vector<ibv_sge> pieces_;        // sizes_.pieces of each request
  std::vector<TrainEnd> trains_;       // also a ring: a train takes at least one request

  std::uint64_t posted_ = 0;     // datagrams posted so far
  std::uint64_t completed_ = 0;  // datagrams of `posted_` that are complete
  std::uint64_t trains_posted_ = 0;
  std::uint64_t trains_settled_ = 0;  // trains that are no longer read
  bool full_ = false;
  bool abandoned_ = false;
  const char* failure_ = nullptr;

  TransportCounters& counters_;
};

}  // namespace leeway::transport
