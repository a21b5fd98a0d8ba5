#include "transport/verbs/verbs_transport.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/limits.h"
#include "transport/train_limits.h"
#include "transport/verbs/refusals.h"

namespace leeway::transport {
namespace {

// Number of receive() calls between two checks for events of the device, which take two system
// calls. wait() checks too, but a busy caller may go without it for long.
constexpr unsigned kReceivesBetweenLooks = 64;

// Time that the last datagrams, such as farewells, have to leave before the queue is closed.
constexpr Duration kFarewell = std::chrono::milliseconds(100);

Regions::Calls calls_of(ibv_pd* domain) {
  return {[domain](ByteSpan memory) {
            return ibv_reg_mr(domain, const_cast<std::byte*>(memory.data()), memory.size(), 0);
          },
          [](ibv_mr* region) { (void)ibv_dereg_mr(region); }};
}

Result<std::size_t> datagram_bytes_of(const VerbsOptions& options, const VerbsPort& port) {
  if (options.datagram_bytes == 0) return port.mtu_bytes;
  const std::size_t most = std::min(port.mtu_bytes, limits::kFrameBytesMax);
  if (options.datagram_bytes >= limits::kDatagramBytesMin && options.datagram_bytes <= most) {
    return options.datagram_bytes;
  }
  return Status::error(StatusCode::kInvalidArgument,
                       "datagram size %zu: RDMA %s port %u carries %zu to %zu bytes",
                       options.datagram_bytes, port.device.c_str(), unsigned{port.port},
                       limits::kDatagramBytesMin, most);
}

}  // namespace

Result<std::unique_ptr<VerbsTransport>> VerbsTransport::open(const VerbsOptions& options) {
  Result<std::unique_ptr<VerbsDevice>> device =
      VerbsDevice::open(options.bind_address, options.receive_bytes);
  if (!device.ok()) return device.status();
  const Result<std::size_t> datagram_bytes = datagram_bytes_of(options, (*device)->port());
  if (!datagram_bytes.ok()) return datagram_bytes.status();
  std::unique_ptr<VerbsTransport> transport(new VerbsTransport(std::move(*device)));
  const Status started = transport->start(*datagram_bytes);
  if (!started.ok()) return started;
  return transport;
}

VerbsTransport::VerbsTransport(std::unique_ptr<VerbsDevice> device)
    : device_(std::move(device)), own_(device_->address()), regions_(calls_of(device_->domain())) {}

VerbsTransport::~VerbsTransport() {
  if (sender_) sender_->drain(kFarewell);
  let_go();
}

Status VerbsTransport::start(std::size_t datagram_bytes) {
  const QueueSizes& sizes = device_->sizes();
  const VerbsPort& port = device_->port();
  Result<Arena> send_slots =
      Arena::make(device_->domain(), port, "send buffer", sizes.send_entries * datagram_bytes, 0);
  if (!send_slots.ok()) return send_slots.status();
  send_slots_ = std::move(*send_slots);
  Result<Arena> receive_slots = Arena::make(
      device_->domain(), port, "receive ring",
      sizes.receive_entries * VerbsReceiver::slot_bytes(port.mtu_bytes), IBV_ACCESS_LOCAL_WRITE);
  if (!receive_slots.ok()) return receive_slots.status();
  receive_slots_ = std::move(*receive_slots);

  sender_.emplace(VerbsSender::Setup{device_->queue_pair(), device_->send_completions(), sizes,
                                     datagram_bytes, send_slots_->data(), send_slots_->key()},
                  regions_, counters_);
  receiver_.emplace(VerbsReceiver::Setup{device_->queue_pair(), device_->receive_completions(),
                                         sizes.receive_entries, port.mtu_bytes, datagram_bytes,
                                         receive_slots_->data(), receive_slots_->key()},
                    peers_, counters_);
  limits_.datagram_bytes_max = datagram_bytes;
  limits_.intact = true;  // the invariant CRC of InfiniBand and RoCE
  limits_.train_datagrams_max = kTrainDatagramsMax;
  limits_.train_slices_max = kTrainSlicesMax;
  limits_.train_bytes_max = kTrainDatagramsMax * datagram_bytes;
  limits_.receive_buffer_bytes = promised_entries(sizes.receive_entries) * datagram_bytes;
  const int error = receiver_->start();
  if (error != 0) return refusal::failed(port, "receive ring", error);
  return waiter_.open(device_->pollable());
}

Status VerbsTransport::set_peers(std::span<const std::vector<std::byte>> by_rank) {
  std::vector<VerbsAddress> addresses;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const Result<VerbsAddress> address = decode_verbs_address(by_rank[rank]);
    if (!address.ok()) {
      return Status::error(address.status().code(), "rank %zu: %s", rank, address.status().c_str());
    }
    addresses.push_back(*address);
  }
  const Status assigned = peers_.assign(addresses, own_);
  if (!assigned.ok()) return assigned;
  std::vector<VerbsSender::Destination> destinations(addresses.size());
  for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
    if (rank == peers_.self()) continue;
    Result<AddressHandle> route = device_->route_to(addresses[rank], rank);
    if (!route.ok()) return route.status();
    destinations[rank] = {route->get(), addresses[rank].queue_pair, addresses[rank].queue_key};
    routes_.push_back(std::move(*route));
  }
  sender_->set_destinations(std::move(destinations));
  return {};
}

Status VerbsTransport::join_multicast(const asio::ip::address& group) {
  Result<VerbsDevice::Group> joined = device_->join(group);
  if (!joined.ok()) return joined.status();
  sender_->set_group({joined->route.get(), kMulticastQueuePair, joined->queue_key});
  routes_.push_back(std::move(joined->route));
  limits_.multicast = true;
  return {};
}

Status VerbsTransport::register_memory(ByteSpan memory) {
  if (!status_.ok()) return status_;
  const int error = regions_.add(memory);
  if (error == 0) return {};
  return refusal::no_memory(device_->port(), "memory to send from", memory.size(), error,
                            refusal::locked_memory_limit());
}

void VerbsTransport::forget_memory(ByteSpan memory) {
  // The caller may have given up waiting for trains that are still borrowed from this memory, so
  // the device first gets time to read it.
  if (sender_->borrowed() > 0) sender_->drain(kFarewell);
  regions_.drop(memory);
}

std::size_t VerbsTransport::send(std::span<const Train> trains) {
  const std::size_t taken = sender_->send(trains);
  if (sender_->failure() != nullptr) look_for_failure();
  return taken;
}

std::size_t VerbsTransport::borrowed() {
  return sender_->borrowed();
}

std::size_t VerbsTransport::receive(std::span<Received> out) {
  const std::size_t filled = receiver_->receive(out);
  if (receiver_->failure() != nullptr || ++receives_ % kReceivesBetweenLooks == 0)
    look_for_failure();
  return filled;
}

void VerbsTransport::wait(Duration timeout) {
  const bool idle = !status_.ok() || ask_for_completions();
  if (idle) waiter_.wait(timeout, false);
  if (!status_.ok()) return;
  if (idle) device_->take_completion_events(asked_receive_, asked_send_);
  look_for_failure();
}

// Asks the device to report the next completions. Returns false if wait() must not sleep, because
// something has come already, or because sending or receiving has failed.
bool VerbsTransport::ask_for_completions() {
  if (!asked_receive_) asked_receive_ = ibv_req_notify_cq(device_->receive_completions(), 0) == 0;
  if (!asked_send_ && sender_->waits()) {
    asked_send_ = ibv_req_notify_cq(device_->send_completions(), 0) == 0;
  }
  const bool sent = sender_->collect();
  return !receiver_->pending() && !sent && sender_->failure() == nullptr &&
         receiver_->failure() == nullptr;
}

void VerbsTransport::look_for_failure() {
  if (!status_.ok()) return;
  const char* why = device_->take_events();
  if (why == nullptr) why = sender_->failure();
  if (why == nullptr) why = receiver_->failure();
  if (why == nullptr) return;
  status_ = refusal::device_gone(device_->port(), why);
  let_go();
}

void VerbsTransport::let_go() {
  waiter_.forget_handles();
  if (sender_) sender_->abandon();
  if (receiver_) receiver_->abandon();
  device_->close_queues();
  routes_.clear();
  regions_.clear();
  if (send_slots_) send_slots_->release();
  if (receive_slots_) receive_slots_->release();
  device_->close();
}

}  // namespace leeway::transport
