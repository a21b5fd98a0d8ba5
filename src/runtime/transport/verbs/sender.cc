#include "transport/verbs/sender.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "base/contracts.h"
#include "transport/train_limits.h"

namespace leeway::transport {
namespace {

constexpr int kSentAtOnce = 32;

}  // namespace

VerbsSender::VerbsSender(const Setup& setup, const Regions& regions, TransportCounters& counters)
    : queue_pair_(setup.queue_pair),
      completions_(setup.completions),
      sizes_(setup.sizes),
      datagram_bytes_(setup.datagram_bytes),
      slots_(setup.slots),
      slots_key_(setup.slots_key),
      regions_(regions),
      requests_(setup.sizes.send_entries),
      pieces_(setup.sizes.send_entries * setup.sizes.pieces),
      trains_(setup.sizes.send_entries),
      counters_(counters) {
  LEEWAY_ASSERT(sizes_.send_entries >= kTrainDatagramsMax && sizes_.pieces > 0);
}

std::size_t VerbsSender::send(std::span<const Train> trains) {
  if (abandoned_) return drop(trains);
  collect();
  const std::uint64_t first = posted_;
  std::size_t taken = 0;
  while (taken < trains.size() && datagrams_of(trains[taken]) <= free_entries())
    lay_out(trains[taken++]);
  full_ = taken < trains.size();
  if (posted_ > first) post(first, trains.first(taken));
  settle();
  return taken;
}

std::size_t VerbsSender::drop(std::span<const Train> trains) {
  counters_.send_errors += trains.size();
  return trains.size();
}

const VerbsSender::Destination& VerbsSender::destination_of(Rank to) const {
  const bool every = to == kEveryRank;
  LEEWAY_ASSERT(every || to < destinations_.size());
  const Destination& destination = every ? group_ : destinations_[to];
  LEEWAY_ASSERT(destination.handle != nullptr);
  return destination;
}

void VerbsSender::lay_out(const Train& train) {
  const std::size_t count = datagrams_of(train);
  LEEWAY_ASSERT(count > 0 && count <= kTrainDatagramsMax && train.segment_bytes <= datagram_bytes_);
  const Destination& destination = destination_of(train.to);
  SliceCursor cursor(train.slices);
  bool reads = false;
  for (std::size_t i = 0; i < count; ++i) {
    ibv_send_wr& request = request_of(posted_);
    request = {};
    request.wr_id = ++posted_;
    request.next = &request_of(posted_);
    request.opcode = IBV_WR_SEND;
    request.wr.ud.ah = destination.handle;
    request.wr.ud.remote_qpn = destination.queue_pair;
    request.wr.ud.remote_qkey = destination.queue_key;
    reads |= gather(request, cursor,
                    std::min(train.segment_bytes, train.total_bytes - i * train.segment_bytes));
  }
  if (reads) request_of(posted_ - 1).send_flags |= IBV_SEND_SIGNALED;
  trains_[trains_posted_++ % trains_.size()] = {posted_, reads};
}

// Lays out one datagram of `bytes` bytes as the pieces of `request`, and moves `cursor` behind it.
// Returns true if the device will read the train's memory, which is then borrowed.
bool VerbsSender::gather(ibv_send_wr& request, SliceCursor& cursor, std::size_t bytes) {
  const std::size_t entry = (request.wr_id - 1) % requests_.size();
  const SliceCursor start = cursor;
  ibv_sge* const pieces = &pieces_[entry * sizes_.pieces];
  const bool fits_inline = bytes <= sizes_.inline_bytes;
  std::size_t count = 0;
  bool registered = true;
  cursor.take(bytes, [&](const std::byte* data, std::size_t part) {
    const std::optional<std::uint32_t> key = fits_inline  ? 0
                                             : registered ? regions_.key_of(data, part)
                                                          : std::nullopt;
    registered &= key.has_value();
    if (count < sizes_.pieces) {
      pieces[count] = {reinterpret_cast<std::uintptr_t>(data), static_cast<std::uint32_t>(part),
                       key.value_or(0)};
    }
    ++count;
  });
  request.sg_list = pieces;
  if (registered && count <= sizes_.pieces) {
    request.num_sge = static_cast<int>(count);
    request.send_flags = fits_inline ? IBV_SEND_INLINE : 0;
    return !fits_inline;
  }
  std::byte* const slot = slots_ + entry * datagram_bytes_;
  SliceCursor(start).copy_to({slot, bytes});
  pieces[0] = {reinterpret_cast<std::uintptr_t>(slot), static_cast<std::uint32_t>(bytes),
               slots_key_};
  request.num_sge = 1;
  ++counters_.datagrams_copied;
  return false;
}

void VerbsSender::post(std::uint64_t first, std::span<const Train> trains) {
  ibv_send_wr& last = request_of(posted_ - 1);
  last.next = nullptr;
  last.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  ++counters_.send_calls;
  if (ibv_post_send(queue_pair_, &request_of(first), &refused) != 0) {
    // The queue has room for these requests, so a refusal means that the device or the queue pair
    // is gone.
    failure_ = "it takes no datagrams";
    drop(trains);
    return;
  }
  counters_.datagrams_sent += posted_ - first;
  for (const Train& train : trains) counters_.bytes_sent += train.total_bytes;
}

bool VerbsSender::collect() {
  if (abandoned_) return false;
  const std::uint64_t before = completed_;
  ibv_wc done[kSentAtOnce];
  int count = kSentAtOnce;
  while (count == kSentAtOnce && failure_ == nullptr) {
    count = ibv_poll_cq(completions_, kSentAtOnce, done);
    if (count < 0) failure_ = "its completions cannot be read";
    for (int i = 0; i < count; ++i) {
      if (done[i].status != IBV_WC_SUCCESS) failure_ = ibv_wc_status_str(done[i].status);
      completed_ = std::clamp<std::uint64_t>(done[i].wr_id, completed_, posted_);
    }
  }
  settle();
  return completed_ > before;
}

// Counts the oldest trains as settled, up to the first train that the device still reads. A train
// that is not settled has requests in the queue, so trains_ needs no more entries than the queue.
void VerbsSender::settle() {
  while (trains_settled_ < trains_posted_) {
    const TrainEnd& oldest = trains_[trains_settled_ % trains_.size()];
    if (oldest.reads && oldest.posted > completed_) break;
    ++trains_settled_;
  }
}

std::size_t VerbsSender::borrowed() {
  collect();
  return trains_posted_ - trains_settled_;
}

void VerbsSender::drain(Duration limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!abandoned_ && failure_ == nullptr && completed_ < posted_) {
    collect();
    if (std::chrono::steady_clock::now() >= until) return;
    sched_yield();
  }
}

void VerbsSender::abandon() {
  abandoned_ = true;
  full_ = false;
  trains_settled_ = trains_posted_;
}

}  // namespace leeway::transport
