#include "transport/verbs/device.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/verbs/refusals.h"

namespace leeway::transport {
namespace {

// Limit on the datagrams in the send queue: 2 MiB at 4,096 bytes each. A repair request waits
// behind all of them, so there should not be more.
constexpr std::size_t kSendEntries = 512;
constexpr std::size_t kReceiveEntriesMin = 256;
// A datagram has two pieces (header and payload). Two more are for callers that gather from more
// places.
constexpr std::size_t kPieces = 4;
// Inline sizes for reports, probes and short datagrams. They are tried in turn, since a driver may
// refuse a size.
constexpr std::size_t kInlineSteps[] = {256, 128, 64, 0};
// Hop limit of RoCE's IP headers, the same as the kernel's default for IP datagrams.
constexpr std::uint8_t kHopLimit = 64;

void make_nonblocking(int handle) {
  fcntl(handle, F_SETFL, fcntl(handle, F_GETFL) | O_NONBLOCK);
}

const char* fatal(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
      return "the device failed";
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return "its queue pair failed";
    case IBV_EVENT_CQ_ERR:
      return "its completion queue overflowed";
    default:
      return nullptr;  // ports that go down come back; packets that are lost meanwhile are repaired
  }
}

}  // namespace

std::optional<QueueSizes> queue_sizes(const VerbsPort& port, std::size_t receive_bytes) {
  const std::size_t wanted = receive_bytes / std::max<std::size_t>(port.mtu_bytes, 1);
  QueueSizes sizes;
  sizes.receive_entries = std::min(std::max(wanted, kReceiveEntriesMin), port.queue_entries_max);
  sizes.send_entries = std::min(kSendEntries, port.queue_entries_max);
  sizes.pieces = std::min(kPieces, port.pieces_max);
  if (sizes.receive_entries < kReceiveEntriesMin || sizes.send_entries < kReceiveEntriesMin) {
    return std::nullopt;
  }
  return sizes;
}

std::size_t promised_entries(std::size_t entries) {
  return entries - entries / 4;
}

Result<std::unique_ptr<VerbsDevice>> VerbsDevice::open(const asio::ip::address& address,
                                                       std::size_t receive_bytes) {
  std::unique_ptr<VerbsDevice> device(new VerbsDevice(address));
  Status status = device->find(address);
  if (!status.ok()) return status;
  const std::optional<QueueSizes> sizes = queue_sizes(device->port_, receive_bytes);
  if (!sizes) return refusal::failed(device->port_, "its queues are too short", EOPNOTSUPP);
  device->sizes_ = *sizes;
  status = device->make_queues();
  if (status.ok()) status = device->make_queue_pair();
  if (status.ok()) status = device->make_ready();
  if (!status.ok()) return status;
  return device;
}

VerbsDevice::~VerbsDevice() {
  close_queues();
  close();
}

Status VerbsDevice::find(const asio::ip::address& address) {
  Result<std::unique_ptr<ConnectionManager>> manager = ConnectionManager::open(address);
  if (!manager.ok()) return manager.status();
  manager_ = std::move(*manager);
  context_.reset(ibv_open_device(manager_->device()));
  if (context_ == nullptr) {
    const ibv_device& device = *manager_->device();
    return refusal::device_closed(device.name, refusal::reason_of(device.dev_name, errno));
  }
  port_ = describe_port(context_.get(), manager_->port());
  const std::optional<Status> refused = refusal::unusable(port_, address);
  if (refused) return *refused;
  gid_ = *choose_gid(port_, address);
  make_nonblocking(context_->async_fd);
  return {};
}

Status VerbsDevice::make_queues() {
  domain_.reset(ibv_alloc_pd(context_.get()));
  if (domain_ == nullptr) return refusal::failed(port_, "protection domain", errno);
  channel_.reset(ibv_create_comp_channel(context_.get()));
  if (channel_ == nullptr) return refusal::failed(port_, "completion channel", errno);
  make_nonblocking(channel_->fd);
  const auto make = [this](std::size_t entries) {
    return CompletionsHandle(
        ibv_create_cq(context_.get(), static_cast<int>(entries), nullptr, channel_.get(), 0));
  };
  send_completions_ = make(sizes_.send_entries);
  if (send_completions_ != nullptr) receive_completions_ = make(sizes_.receive_entries);
  if (receive_completions_ == nullptr) {
    return refusal::no_memory(port_, "completion queues",
                              (sizes_.send_entries + sizes_.receive_entries) * sizeof(ibv_wc),
                              errno, refusal::locked_memory_limit());
  }
  return {};
}

Status VerbsDevice::make_queue_pair() {
  ibv_qp_init_attr wanted{};
  wanted.qp_type = IBV_QPT_UD;
  wanted.send_cq = send_completions_.get();
  wanted.recv_cq = receive_completions_.get();
  wanted.cap.max_send_wr = static_cast<std::uint32_t>(sizes_.send_entries);
  wanted.cap.max_recv_wr = static_cast<std::uint32_t>(sizes_.receive_entries);
  wanted.cap.max_send_sge = static_cast<std::uint32_t>(sizes_.pieces);
  wanted.cap.max_recv_sge = 1;
  for (const std::size_t inline_bytes : kInlineSteps) {
    ibv_qp_init_attr attempt = wanted;  // the driver writes the sizes that it grants into it
    attempt.cap.max_inline_data = static_cast<std::uint32_t>(inline_bytes);
    queue_pair_.reset(ibv_create_qp(domain_.get(), &attempt));
    sizes_.inline_bytes = inline_bytes;
    if (queue_pair_ != nullptr) return {};
    if (errno == ENOMEM) break;
  }
  return refusal::no_memory(port_, "queue pair",
                            sizes_.send_entries * sizes_.pieces * sizeof(ibv_sge), errno,
                            refusal::locked_memory_limit());
}

Status VerbsDevice::make_ready() {
  ibv_qp_attr attributes{};
  int mask = 0;
  int error = manager_->initial_attributes(attributes, mask);
  queue_key_ = attributes.qkey;
  if (error == 0) error = ibv_modify_qp(queue_pair_.get(), &attributes, mask);
  attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  if (error == 0) error = ibv_modify_qp(queue_pair_.get(), &attributes, IBV_QP_STATE);
  attributes.qp_state = IBV_QPS_RTS;
  if (error == 0) {
    error = ibv_modify_qp(queue_pair_.get(), &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN);
  }
  return error == 0 ? Status() : refusal::failed(port_, "queue pair does not get ready", error);
}

VerbsAddress VerbsDevice::address() const {
  const std::uint16_t lid = port_.link == LinkLayer::infiniband ? port_.lid : std::uint16_t{0};
  return {port_.link, lid, queue_pair_->qp_num, queue_key_, gid_.gid};
}

std::array<int, 3> VerbsDevice::pollable() const {
  return {channel_->fd, context_->async_fd, manager_->pollable()};
}

void VerbsDevice::take_completion_events(bool& asked_receive, bool& asked_send) {
  ibv_cq* completions = nullptr;
  void* nothing = nullptr;
  while (ibv_get_cq_event(channel_.get(), &completions, &nothing) == 0) {
    ibv_ack_cq_events(completions, 1);
    (completions == send_completions_.get() ? asked_send : asked_receive) = false;
  }
}

const char* VerbsDevice::take_events() {
  if (manager_->device_removed()) return "the device was removed";
  ibv_async_event event{};
  const char* why = nullptr;
  while (ibv_get_async_event(context_.get(), &event) == 0) {
    if (why == nullptr) why = fatal(event.event_type);
    ibv_ack_async_event(&event);
  }
  return why;
}

Result<AddressHandle> VerbsDevice::route_to(const VerbsAddress& peer, std::size_t rank) const {
  ibv_ah_attr route{};
  route.port_num = port_.port;
  route.dlid = peer.lid;
  // The upper half of a GID names the InfiniBand subnet. Within one subnet a LID is enough as a
  // route.
  route.is_global = port_.link == LinkLayer::ethernet ||
                    !std::equal(peer.gid.begin(), peer.gid.begin() + 8, gid_.gid.begin());
  std::memcpy(route.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  route.grh.sgid_index = static_cast<std::uint8_t>(gid_.index);
  route.grh.hop_limit = kHopLimit;
  AddressHandle handle(ibv_create_ah(domain_.get(), &route));
  if (handle != nullptr) return handle;
  return refusal::no_route(port_, rank, ip_text(peer.gid), errno);
}

Result<VerbsDevice::Group> VerbsDevice::join(const asio::ip::address& group) {
  Result<ConnectionManager::Joined> joined = manager_->join(port_, group);
  if (!joined.ok()) return joined.status();
  Group made{AddressHandle(ibv_create_ah(domain_.get(), &joined->route)), joined->queue_key};
  int error = made.route == nullptr ? errno : 0;
  // A queue pair has only one queue key, so the group must have the same.
  if (error == 0 && made.queue_key != queue_key_) error = EPERM;
  if (error == 0) {
    error = ibv_attach_mcast(queue_pair_.get(), &joined->route.grh.dgid, joined->route.dlid);
  }
  if (error != 0) return refusal::no_multicast(port_, group, error);
  attached_ = {joined->route.grh.dgid, joined->route.dlid};
  return made;
}

void VerbsDevice::close_queues() {
  if (attached_) ibv_detach_mcast(queue_pair_.get(), &attached_->first, attached_->second);
  attached_.reset();
  queue_pair_.reset();
  receive_completions_.reset();
  send_completions_.reset();
  channel_.reset();
}

void VerbsDevice::close() {
  domain_.reset();
  context_.reset();
  manager_.reset();
}

}  // namespace leeway::transport
