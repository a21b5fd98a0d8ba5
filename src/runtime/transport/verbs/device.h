// One UD queue pair on the RDMA port that has a given IP address, and the events of its device.
//
// The queue pair is in a context of our own, beside an rdma_cm id that is bound to the address. The
// id finds the device and the partition, joins multicast groups and hears that the device is
// removed. It does not own the queue pair, because librdmacm keeps its context open until the
// process ends. `rdma link del` of a driver without hot unplug (rdma_rxe) would then never finish.
#pragma once

#include <array>
#include <asio/ip/address.hpp>
#include <cstdint>
#include <memory>
#include <optional>

#include "leeway/status.h"
#include "transport/verbs/connection_manager.h"
#include "transport/verbs/handles.h"
#include "transport/verbs/verbs_devices.h"

namespace leeway::transport {

// Number of entries of the queues, and limits of a send request.
struct QueueSizes {
  std::size_t receive_entries = 0;
  std::size_t send_entries = 0;
  std::size_t pieces = 0;
  std::size_t inline_bytes = 0;  // 0 if the driver takes none
};

// Returns the sizes of a port's queues, as far as the device allows. The receive queue holds
// `receive_bytes` of full datagrams. Returns nullopt if the device allows too few entries.
std::optional<QueueSizes> queue_sizes(const VerbsPort& port, std::size_t receive_bytes);

// Returns how many of the receive queue's `entries` are for full datagrams. The rest is for control
// datagrams and for those that receive() has lent out.
std::size_t promised_entries(std::size_t entries);

class VerbsDevice {
 public:
  // Opens the device. The queue pair can then send and receive, but no receives are posted yet.
  // Errors name the remedy.
  static Result<std::unique_ptr<VerbsDevice>> open(const asio::ip::address& address,
                                                   std::size_t receive_bytes);
  ~VerbsDevice();

  const VerbsPort& port() const { return port_; }
  const QueueSizes& sizes() const { return sizes_; }
  VerbsAddress address() const;

  ibv_pd* domain() const { return domain_.get(); }
  ibv_qp* queue_pair() const { return queue_pair_.get(); }
  ibv_cq* send_completions() const { return send_completions_.get(); }
  ibv_cq* receive_completions() const { return receive_completions_.get(); }

  // Returns handles that become readable on events, and on completions that were asked for.
  std::array<int, 3> pollable() const;
  // Takes the completion events off their channel. Clears the flag of a queue that had an event,
  // because the caller must ask again for the next one.
  void take_completion_events(bool& asked_receive, bool& asked_send);

  // Returns why the device can never be used again, or nullptr while it can.
  const char* take_events();

  // Returns the handle for sending to a peer. `rank` is for the text of an error.
  Result<AddressHandle> route_to(const VerbsAddress& peer, std::size_t rank) const;

  // Receives the group's datagrams from now on, and returns the route to it. Call it once.
  struct Group {
    AddressHandle route;
    std::uint32_t queue_key = 0;
  };
  Result<Group> join(const asio::ip::address& group);

  // Call close_queues(), then release all that others made in the domain, then call close(). After
  // close_queues() the device neither reads nor writes memory.
  void close_queues();
  void close();

 private:
  explicit VerbsDevice(const asio::ip::address& address) : address_(address) {}
  Status find(const asio::ip::address& address);
  Status make_queues();
  Status make_queue_pair();
  Status make_ready();

  const asio::ip::address address_;
  VerbsPort port_;
  VerbsGid gid_;
  QueueSizes sizes_;
  std::uint32_t queue_key_ = 0;

  std::unique_ptr<ConnectionManager> manager_;
  ContextHandle context_;
  DomainHandle domain_;
  ChannelHandle channel_;
  CompletionsHandle send_completions_;
  CompletionsHandle receive_completions_;
  QueuePairHandle queue_pair_;
  std::optional<std::pair<ibv_gid, std::uint16_t>> attached_;  // the group's GID and LID
};

}  // namespace leeway::transport
