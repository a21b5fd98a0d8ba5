// The rdma_cm id of a transport. It finds the device that has an address, joins multicast groups,
// and hears when the device is removed.
#pragma once

#include <rdma/rdma_cma.h>

#include <asio/ip/address.hpp>
#include <asio/ip/udp.hpp>
#include <memory>
#include <optional>
#include <string>

#include "leeway/status.h"
#include "transport/verbs/verbs_devices.h"

namespace leeway::transport {

class ConnectionManager {
 public:
  // Makes a manager bound to `address`, which must be that of an RDMA port.
  static Result<std::unique_ptr<ConnectionManager>> open(const asio::ip::address& address);
  ~ConnectionManager();
  ConnectionManager(const ConnectionManager&) = delete;
  ConnectionManager& operator=(const ConnectionManager&) = delete;

  ibv_device* device() const { return id_->verbs->device; }
  std::uint8_t port() const { return id_->port_num; }
  int pollable() const { return channel_->fd; }

  // Fills in the attributes that take a queue pair of the port to the state INIT: partition, port,
  // queue key. Returns 0 or an errno.
  int initial_attributes(ibv_qp_attr& attributes, int& mask);

  struct Joined {
    ibv_ah_attr route{};
    std::uint32_t queue_key = 0;
  };
  // Joins the group. Call it once. Waits for the fabric's answer, at most five seconds.
  Result<Joined> join(const VerbsPort& port, const asio::ip::address& group);

  // Takes all events that have come. Returns true once the device has been removed.
  bool device_removed();

 private:
  ConnectionManager() = default;
  // Takes one event. Returns false if none has come. For a multicast event, `joined` and `error`
  // get the outcome.
  bool take_event(Joined* joined, int* error);

  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  std::optional<asio::ip::udp::endpoint> group_;
  bool removed_ = false;
  bool answered_ = false;  // the multicast group's answer has come
};

}  // namespace leeway::transport
