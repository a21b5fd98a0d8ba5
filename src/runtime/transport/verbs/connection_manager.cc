#include "transport/verbs/connection_manager.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "transport/verbs/refusals.h"

namespace leeway::transport {
namespace {

// Longest wait for the answer to a join. A subnet manager answers within milliseconds; on Ethernet
// the kernel answers by itself.
constexpr int kJoinMs = 5000;

sockaddr* raw(asio::ip::udp::endpoint& endpoint) {
  return endpoint.data();
}

// Lets the kernel remove a device without hot unplug. The kernel waits until all contexts of the
// device are closed, and librdmacm keeps one open until the process ends. So this function replaces
// the context's open descriptors by /dev/null. The kernel can then finish, and librdmacm can still
// close the descriptors later.
void let_go_of(ibv_context* context) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return;
  for (const int handle : {context->cmd_fd, context->async_fd}) {
    if (handle >= 0) dup3(nothing, handle, O_CLOEXEC);
  }
  ::close(nothing);
}

}  // namespace

Result<std::unique_ptr<ConnectionManager>> ConnectionManager::open(
    const asio::ip::address& address) {
  const std::vector<VerbsPort> ports = list_verbs_ports();
  if (ports.empty()) return refusal::no_device();
  std::unique_ptr<ConnectionManager> manager(new ConnectionManager);
  manager->channel_ = rdma_create_event_channel();
  if (manager->channel_ == nullptr) {
    return refusal::no_connection_manager(refusal::reason_of("rdma_cm", errno));
  }
  const int flags = fcntl(manager->channel_->fd, F_GETFL);
  fcntl(manager->channel_->fd, F_SETFL, flags | O_NONBLOCK);
  if (rdma_create_id(manager->channel_, &manager->id_, nullptr, RDMA_PS_UDP) != 0) {
    return refusal::no_connection_manager(errno);
  }
  asio::ip::udp::endpoint local(address, 0);
  if (rdma_bind_addr(manager->id_, raw(local)) == 0 && manager->id_->verbs != nullptr)
    return manager;
  return refusal::no_port(address, ports);
}

ConnectionManager::~ConnectionManager() {
  if (id_ != nullptr) {
    ibv_context* context = id_->verbs;
    if (group_) rdma_leave_multicast(id_, raw(*group_));
    rdma_destroy_id(id_);
    if (removed_ && context != nullptr) let_go_of(context);
  }
  if (channel_ != nullptr) rdma_destroy_event_channel(channel_);
}

int ConnectionManager::initial_attributes(ibv_qp_attr& attributes, int& mask) {
  attributes.qp_state = IBV_QPS_INIT;
  return rdma_init_qp_attr(id_, &attributes, &mask) == 0 ? 0 : errno;
}

Result<ConnectionManager::Joined> ConnectionManager::join(const VerbsPort& port,
                                                          const asio::ip::address& group) {
  group_.emplace(group, 0);
  if (rdma_join_multicast(id_, raw(*group_), nullptr) != 0) {
    return refusal::no_multicast(port, group, errno);
  }
  Joined joined;
  int error = ETIMEDOUT;
  for (answered_ = false; !answered_ && !removed_;) {
    pollfd watched{channel_->fd, POLLIN, 0};
    if (poll(&watched, 1, kJoinMs) <= 0) break;
    while (take_event(&joined, &error)) {
    }
  }
  if (removed_) error = ENODEV;
  if (error == 0) return joined;
  return refusal::no_multicast(port, group, error);
}

bool ConnectionManager::device_removed() {
  while (take_event(nullptr, nullptr)) {
  }
  return removed_;
}

bool ConnectionManager::take_event(Joined* joined, int* error) {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel_, &event) != 0) return false;
  const bool is_join = event->event == RDMA_CM_EVENT_MULTICAST_JOIN;
  removed_ |= event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
  if ((is_join || event->event == RDMA_CM_EVENT_MULTICAST_ERROR) && joined != nullptr) {
    answered_ = true;
    *error = is_join && event->status == 0 ? 0 : event->status == 0 ? EIO : std::abs(event->status);
    *joined = {event->param.ud.ah_attr, event->param.ud.qkey};
  }
  rdma_ack_cm_event(event);
  return true;
}

}  // namespace leeway::transport
