#include "transport/ucx/sender.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/contracts.h"
#include "transport/train_limits.h"
#include "transport/ucx/library.h"

namespace leeway::transport {

UcxSender::~UcxSender() {
  if (gathered_ != 0) ucp_dt_destroy(gathered_);
}

Status UcxSender::open(std::size_t datagram_bytes_max) {
  datagram_bytes_max_ = datagram_bytes_max;
  copies_ = std::make_unique_for_overwrite<std::byte[]>(kSlots * datagram_bytes_max);
  for (std::size_t i = kSlots; i-- > 0;) {
    slots_[i].owner = this;
    slots_[i].copy = copies_.get() + i * datagram_bytes_max;
    free_slot(slots_[i]);
  }
  static const ucp_generic_dt_ops_t operations{start_pack, nullptr, packed_size,
                                               pack,       nullptr, finish};
  const ucs_status_t status = ucp_dt_create_generic(&operations, nullptr, &gathered_);
  if (status != UCS_OK)
    return ucx_error(StatusCode::kResourceExhausted, status, "data type of datagrams");
  contiguous_.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
                             UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  contiguous_.flags = UCP_AM_SEND_FLAG_EAGER;
  contiguous_.cb.send = on_sent;
  contiguous_.memory_type = UCS_MEMORY_TYPE_HOST;
  gathering_ = contiguous_;
  gathering_.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
  gathering_.datatype = gathered_;
  return {};
}

Status UcxSender::connect(ucp_worker_h worker, std::span<const ByteSpan> addresses, Rank self,
                          std::uint64_t group) {
  mark_ = {group, self, 0};
  waiting_.assign(addresses.size(), 0);
  for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                        UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.address = reinterpret_cast<const ucp_address_t*>(addresses[rank].data());
    // UCX's own handling of dead peers is off, because UCX would then not use shared memory.
    // kSlotsPerPeer limits what a dead peer costs, and the protocol's deadline finds the peer.
    params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    params.err_handler = {on_failure, nullptr};
    ucp_ep_h endpoint = nullptr;
    const ucs_status_t status = ucp_ep_create(worker, &params, &endpoint);
    if (status != UCS_OK) {
      char what[48];
      std::snprintf(what, sizeof(what), "no way to rank %zu", rank);
      return ucx_error(StatusCode::kUnavailable, status, what);
    }
    endpoints_.push_back(endpoint);
  }
  return {};
}

std::size_t UcxSender::send(std::span<const Train> trains) {
  ++counters_.send_calls;
  for (std::size_t i = 0; i < trains.size(); ++i) {
    const Train& train = trains[i];
    LEEWAY_ASSERT(train.to < endpoints_.size() && train.segment_bytes > 0);
    if (outstanding_ > 0 && !room()) return i;
    SliceCursor next(train.slices);
    bool sent = train.segment_bytes <= datagram_bytes_max_;
    for (std::size_t at = 0; at < train.total_bytes && sent; at += train.segment_bytes) {
      const std::size_t bytes = std::min(train.segment_bytes, train.total_bytes - at);
      sent = send_one(train.to, next, bytes);
      next.skip(bytes);
    }
    counters_.send_errors += !sent;
  }
  return trains.size();
}

// Returns true if there are slots for a whole train.
bool UcxSender::room() {
  if (outstanding_ + kTrainDatagramsMax <= kSlots) return true;
  receiver_.progress();
  return outstanding_ + kTrainDatagramsMax <= kSlots;
}

// Sends one datagram of a train. Returns false if the datagram is lost.
bool UcxSender::send_one(Rank to, SliceCursor start, std::size_t bytes) {
  if (waiting_[to] >= kSlotsPerPeer) return false;
  Slot& slot = *free_;
  slot.start = start;
  slot.copied = false;
  slot.bytes = bytes;
  slot.to = to;
  const bool small = bytes <= kSmallBytes;
  if (small) put_aside(slot);

  ucp_request_param_t& param = small ? contiguous_ : gathering_;
  param.user_data = &slot;
  const void* const data = small ? static_cast<const void*>(slot.copy) : &slot;
  void* const request = ucp_am_send_nbx(endpoints_[to], kUcxMessageId, &mark_, sizeof(mark_), data,
                                        small ? bytes : 1, &param);
  if (UCS_PTR_IS_ERR(request)) return false;
  if (UCS_PTR_IS_PTR(request)) {
    free_ = slot.next_free;
    ++outstanding_;
    ++waiting_[to];
    if (!small) put_aside(slot);
    counters_.datagrams_copied += !small;
  }
  counters_.bytes_sent += bytes;
  ++counters_.datagrams_sent;
  return true;
}

void UcxSender::put_aside(Slot& slot) {
  SliceCursor cursor = slot.start;
  cursor.copy_to({slot.copy, slot.bytes});
  slot.copied = true;
}

void UcxSender::on_sent(void* request, ucs_status_t status, void* argument) {
  Slot& slot = *static_cast<Slot*>(argument);
  UcxSender& self = *slot.owner;
  self.counters_.send_errors += status != UCS_OK;
  --self.outstanding_;
  --self.waiting_[slot.to];
  self.free_slot(slot);
  ucp_request_free(request);
}

void UcxSender::free_slot(Slot& slot) {
  slot.next_free = free_;
  free_ = &slot;
}

// Does nothing, but must exist: without a handler some of UCX's transports end the process. UCX
// refuses later datagrams to the failed endpoint, so these count as lost.
void UcxSender::on_failure(void*, ucp_ep_h, ucs_status_t) {}

// UCX asks for a datagram's bytes once, when the device has room for them.
void* UcxSender::start_pack(void*, const void* slot, std::size_t) {
  return const_cast<void*>(slot);
}

std::size_t UcxSender::packed_size(void* slot) {
  return static_cast<Slot*>(slot)->bytes;
}

std::size_t UcxSender::pack(void* argument, std::size_t offset, void* out, std::size_t room) {
  const Slot& slot = *static_cast<Slot*>(argument);
  const std::size_t bytes = std::min(room, slot.bytes - offset);
  if (slot.copied) {
    std::memcpy(out, slot.copy + offset, bytes);
  } else {
    SliceCursor cursor = slot.start;
    cursor.skip(offset);
    cursor.copy_to({static_cast<std::byte*>(out), bytes});
  }
  return bytes;
}

void UcxSender::finish(void*) {}

void UcxSender::drain(Duration timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (blocked() && std::chrono::steady_clock::now() < until) receiver_.progress();
}

}  // namespace leeway::transport
