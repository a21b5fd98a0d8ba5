#include "communicator/udp_endpoint.h"

#include <algorithm>
#include <mutex>

#include "base/marks.h"
#include "base/per_process.h"
#include "base/random_bits.h"
#include "communicator/channels.h"
#include "communicator/datagram_route.h"
#include "communicator/memory_sharing.h"
#include "communicator/sealing.h"
#include "observe/trace.h"
#include "rendezvous/address.h"
#include "seal/aead.h"

namespace leeway::internal {
namespace {

// All endpoints of this process, by the options that they were opened for.
struct Registry {
  std::mutex mutex;
  std::multimap<std::string, std::weak_ptr<UdpEndpoint>> endpoints;
};
Registry& registry() {
  static auto* const of_process = new PerProcess<Registry>;  // never destroyed
  return of_process->get();
}

// Returns a key of the registry, made of the options that must agree if two groups share a socket.
std::string key_of(const Options& options, const asio::ip::address& address,
                   const keys::Secrets* secrets) {
  std::string held;
  if (secrets != nullptr && secrets->for_meetings_only()) {
    held = " sealed";
  } else if (secrets != nullptr) {
    for (const std::uint64_t id : secrets->ids()) held.append(" ").append(std::to_string(id));
  }
  return address.to_string() + " " + std::to_string(options.datagram_bytes) + " " +
         std::to_string(options.socket_buffer_bytes) + " " +
         std::string(to_string(options.congestion)) + " " +
         std::to_string(options.rate_bits_per_second) + " " + std::to_string(options.port) + " " +
         (may_share_memory(options) ? "memory" : "") + held;
}

// Returns the name of a group, the same for all its ranks in this process. It leaves out the store
// and the rendezvous' address, because the ranks may have different stores, or spell the address
// differently.
std::string name_of(const Options& options) {
  return std::to_string(options.restart_count) + " " + options.communicator_name;
}

class OpenSocket final : public rendezvous::Candidate {
 public:
  using Socket = std::function<transport::UdpTransport&()>;  // which may move

  explicit OpenSocket(Socket udp) : udp_(std::move(udp)) {}

  TransportKind kind() const override { return TransportKind::udp; }
  rendezvous::GroupTransport::Member place() const override {
    const transport::UdpAddress& local = udp_().local_address();
    return {rendezvous::to_bytes(local.address()), local.port(),
            udp_().limits().receive_buffer_bytes};
  }
  const TransportLimits& limits() const override { return udp_().limits(); }
  void allow_marks() override { udp_().allow_marks(); }

  // Not used here: UdpEndpoint::meet() and driver() do the work of connect() and the functions
  // below.
  Status connect(const rendezvous::GroupTransport&, Rank) override { return Status(); }
  Status join_multicast(const asio::ip::address&, std::uint16_t) override {
    return Status::error(StatusCode::kUnsupported, "a shared socket joins no multicast group");
  }
  std::unique_ptr<DatagramTransport> take() override { return nullptr; }

 private:
  const Socket udp_;
};

}  // namespace

UdpEndpoint::Seat::~Seat() {
  std::lock_guard lock(registry().mutex);
  endpoint_->seats_.erase(endpoint_->seats_.find(name_));
}

UdpEndpoint::UdpEndpoint(Opened opened, std::shared_ptr<const keys::OwnIdentity> identity,
                         const rendezvous::MemoryPlace& memory, std::uint8_t lane)
    : driver_(std::move(opened.driver)),
      udp_(opened.udp),
      process_(random_bits()),
      identity_(std::move(identity)),
      memory_(memory),
      lane_(lane) {}

Result<std::unique_ptr<UdpEndpoint::Seat>> UdpEndpoint::take_seat(
    const Options& options, std::shared_ptr<const keys::Secrets> secrets) {
  const bool udp =
      options.transport == TransportKind::automatic || rendezvous::is_over_udp(options.transport);
  if (!udp || options.faults.any() || options.multicast || options.world_size.value_or(1) == 1)
    return std::unique_ptr<Seat>();
  const auto address = rendezvous::data_address(options);
  if (!address.ok()) return address.status();
  const std::string name = name_of(options);
  const std::string key = key_of(options, *address, secrets.get());
  std::lock_guard lock(registry().mutex);
  std::erase_if(registry().endpoints, [](const auto& entry) { return entry.second.expired(); });
  const auto [first, last] = registry().endpoints.equal_range(key);
  std::shared_ptr<UdpEndpoint> endpoint;
  for (auto it = first; it != last && endpoint == nullptr; ++it) {
    endpoint = it->second.lock();
    if (endpoint != nullptr && endpoint->seats_.contains(name)) endpoint = nullptr;
  }
  if (endpoint == nullptr) {
    std::shared_ptr<const keys::OwnIdentity> identity;
    if (secrets != nullptr) {
      auto made = keys::OwnIdentity::make(secrets, seal::prefers_chacha());
      if (!made.ok()) return made.status();
      identity = std::move(*made);
    }
    auto opened = open(options, *address, std::move(identity), 0);
    if (!opened.ok()) return opened.status();
    endpoint = std::move(*opened);
    registry().endpoints.emplace(key, endpoint);
  }
  endpoint->seats_.insert(name);
  return std::make_unique<Seat>(
      endpoint, name, secrets == nullptr ? nullptr : endpoint->identity_->with(std::move(secrets)));
}

Result<std::shared_ptr<UdpEndpoint>> UdpEndpoint::open(
    const Options& options, const asio::ip::address& address,
    std::shared_ptr<const keys::OwnIdentity> identity, std::uint8_t lane) {
  auto opened = open_socket(options, address, identity.get(), lane);
  if (!opened.ok()) return opened.status();
  rendezvous::MemoryPlace memory;
  if (opened->shares_memory) memory = new_memory_place();
  return std::shared_ptr<UdpEndpoint>(
      new UdpEndpoint(std::move(*opened), std::move(identity), memory, lane));
}

Result<UdpEndpoint::Opened> UdpEndpoint::open_socket(const Options& options,
                                                     const asio::ip::address& address,
                                                     const keys::OwnIdentity* identity,
                                                     std::uint8_t lane) {
  transport::UdpOptions udp;
  udp.bind_address = address;
  udp.port = options.port;
  udp.datagram_bytes = options.datagram_bytes;
  udp.loopback = transport::Loopback::memory;  // no faults are injected here
  if (options.socket_buffer_bytes != 0) udp.socket_buffer_bytes = options.socket_buffer_bytes;
  if (identity != nullptr) udp.sealed_tag_base = identity->told.tag;
  auto socket = transport::UdpTransport::open(udp);
  if (!socket.ok()) return socket.status();
  Opened opened{.udp = socket->get()};
  if (slows_for_marks(options.congestion)) opened.udp->allow_marks();
  std::unique_ptr<DatagramTransport> transport = std::move(*socket);
  driving::Layers layers{.lengths = opened.udp, .where = opened.udp};
  if (identity != nullptr) {
    auto sealing = seal_transport(std::move(transport), lane);
    layers.sealed = sealing.get();
    transport = std::move(sealing);
  }
  if (may_share_memory(options)) transport = with_memory(std::move(transport), layers.mixed);
  opened.shares_memory = layers.mixed != nullptr;
  auto driver =
      driving::Driver::start(TransportKind::udp, observe::traced(std::move(transport), options),
                             lane == 0 ? settings_of(options) : congestion::Settings(), layers);
  if (!driver.ok()) return driver.status();
  opened.driver = std::move(*driver);
  return opened;
}

Status UdpEndpoint::move_to(const Options& options, const asio::ip::address& address) {
  std::lock_guard lock(registry().mutex);
  if (udp_->local_address().address() == address) return Status();
  if (!slots_.empty() || seats_.size() > 1)
    return Status::error(StatusCode::kUnavailable, "other communicators of this process use it");
  Options there = options;
  there.port = udp_->local_address().port();
  auto opened = open_socket(there, address, identity_.get(), lane_);
  if (!opened.ok()) return opened.status();
  driver_ = std::move(opened->driver);
  udp_ = opened->udp;
  return Status();
}

Result<std::shared_ptr<UdpEndpoint>> UdpEndpoint::lane(const Options& options, int lane) {
  std::lock_guard lock(registry().mutex);
  if (const auto known = lanes_.find(lane); known != lanes_.end()) return known->second;
  auto opened = open(options_of_lane(options, lane), udp_->local_address().address(), identity_,
                     static_cast<std::uint8_t>(lane));
  if (!opened.ok()) return opened;
  (*opened)->driver_->pace_with(*driver_);
  lanes_.emplace(lane, *opened);
  return opened;
}

void UdpEndpoint::pace(const Options& options) {
  const congestion::Settings settings = settings_of(options);
  {
    driving::Driver::Session session(*driver_);
    if (!session.node().pace(driving::steady_now(), settings)) return;
    if (slows_for_marks(settings.control)) udp_->allow_marks();
  }
  std::lock_guard lock(registry().mutex);
  for (const auto& [number, lane] : lanes_) {
    lane->driver_->pace_with(*driver_);
    driving::Driver::Session session(*lane->driver_);
    if (slows_for_marks(settings.control)) lane->udp_->allow_marks();
  }
}

std::unique_ptr<rendezvous::Candidate> UdpEndpoint::candidate() {
  return std::make_unique<OpenSocket>([this]() -> transport::UdpTransport& { return *udp_; });
}

Result<std::vector<Rank>> UdpEndpoint::meet(const rendezvous::Group& group, Rank self) {
  const rendezvous::GroupTransport& lane = group.datagrams;
  const keys::JoinedKeys* const keys = group.keys.get();
  std::vector<Rank> slots;
  driving::Driver::Session session(*driver_);
  for (std::size_t rank = 0; rank < lane.members.size(); ++rank) {
    const auto address = rendezvous::address_from_bytes(lane.members[rank].address);
    if (!address)
      return Status::error(StatusCode::kInternal, "create: rendezvous gave a malformed address");
    const Rank next = udp_->peers();
    const Process process = keys == nullptr ? Process{group.processes[rank], keys::Key{}}
                                            : Process{0, keys->members[rank].public_key};
    const auto [known, is_new] = slots_.emplace(process, next);
    slots.push_back(known->second);
    if (!is_new && (rank == self || keys != nullptr)) continue;
    const Status status = udp_->meet_peer(known->second, {*address, lane.members[rank].port});
    if (!status.ok()) {
      if (is_new) slots_.erase(known);
      return status;
    }
  }
  if (keys != nullptr) {
    if (Status status = introduce(*keys, self, slots, lane_, *session.sealed()); !status.ok())
      return status;
  }
  if (session.mixed() != nullptr) meet_by_memory(group, self, slots, *session.mixed());
  return slots;
}

}  // namespace leeway::internal
