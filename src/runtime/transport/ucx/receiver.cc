#include "transport/ucx/receiver.h"

#include <algorithm>
#include <cstring>

#include "transport/ucx/library.h"

namespace leeway::transport {

Status UcxReceiver::open(ucp_worker_h worker, std::size_t datagram_bytes_max) {
  worker_ = worker;
  datagram_bytes_max_ = datagram_bytes_max;
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kUcxMessageId;
  // Messages stay in UCX's memory until Leeway gives them back. UCX copies a message if the device
  // cannot leave it where it is.
  handler.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
  handler.cb = on_message;
  handler.arg = this;
  const ucs_status_t status = ucp_worker_set_am_recv_handler(worker, &handler);
  if (status != UCS_OK) return ucx_error(StatusCode::kInternal, status, "message handler");
  return {};
}

ucs_status_t UcxReceiver::on_message(void* self, const void* header, std::size_t header_bytes,
                                     void* data, std::size_t bytes,
                                     const ucp_am_recv_param_t* param) {
  return static_cast<UcxReceiver*>(self)->take(header, header_bytes, data, bytes, param->recv_attr);
}

// Handles one message. Returns UCS_OK if UCX may free it, or UCS_INPROGRESS if UCX must keep it.
ucs_status_t UcxReceiver::take(const void* header, std::size_t header_bytes, void* data,
                               std::size_t bytes, std::uint64_t attributes) {
  UcxMark mark;
  if (header_bytes == sizeof(mark)) std::memcpy(&mark, header, sizeof(mark));
  if (mark.group != group_ || mark.from >= size_) {
    ++counters_.from_strangers;
    return UCS_OK;
  }
  if (bytes > datagram_bytes_max_ || (attributes & UCP_AM_RECV_ATTR_FLAG_DATA) == 0) {
    ++counters_.oversized;  // a message without its data was not sent by Leeway
    return UCS_OK;
  }
  if (arrived_ - released_ == kHeldMax) {
    ++counters_.kernel_drops;
    return UCS_OK;
  }
  at(arrived_++) = {static_cast<std::byte*>(data), static_cast<std::uint32_t>(bytes),
                    static_cast<Rank>(mark.from)};
  return UCS_INPROGRESS;
}

void UcxReceiver::release() {
  for (; released_ != lent_; ++released_) ucp_am_data_release(worker_, at(released_).data);
}

void UcxReceiver::close() {
  lent_ = arrived_;
  release();
}

bool UcxReceiver::progress() {
  if (arrived_ - released_ >= kHeldEnough) return false;
  return ucp_worker_progress(worker_) != 0;
}

std::size_t UcxReceiver::receive(std::span<Received> out) {
  release();
  while (arrived_ - lent_ < out.size() && progress()) {
  }
  const std::size_t filled = std::min<std::size_t>(arrived_ - lent_, out.size());
  for (Received& datagram : out.first(filled)) {
    const Held& held = at(lent_++);
    datagram = {held.from, {held.data, held.bytes}};
    counters_.bytes_received += held.bytes;
  }
  counters_.datagrams_received += filled;
  ++counters_.receive_calls;
  return filled;
}

}  // namespace leeway::transport
