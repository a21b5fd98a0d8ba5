#include "communicator/channels.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "base/philox.h"
#include "base/thread.h"
#include "communicator/memory_sharing.h"
#include "communicator/near_route.h"
#include "communicator/sealing.h"
#include "communicator/site_route.h"
#include "driving/work_state.h"
#include "impairment/fault_plan.h"
#include "observe/trace.h"
#include "protocol/window.h"
#include "transport/fault/fault_transport.h"

namespace leeway::internal {
// Marks that this thread is in abort(), whose callbacks may destroy the communicator.
class Channels::Aborting {
 public:
  explicit Aborting(Channels& channels) : channels_(&channels), outer_(innermost) {
    ++channels.aborting_;
    innermost = this;
  }
  Aborting(const Aborting&) = delete;
  Aborting& operator=(const Aborting&) = delete;
  ~Aborting() {
    innermost = outer_;
    if (channels_ != nullptr) --channels_->aborting_;
  }

  // Waits until no other thread is in abort(). Does not wait for this thread's own calls of
  // abort(), inside which the destructor runs.
  static void await_others(Channels& channels) {
    int own = 0;
    for (Aborting* one = innermost; one != nullptr; one = one->outer_) {
      if (one->channels_ != &channels) continue;
      one->channels_ = nullptr;
      ++own;
    }
    while (channels.aborting_ > own && !channels.forked()) std::this_thread::yield();
  }

 private:
  static inline thread_local Aborting* innermost = nullptr;
  Channels* channels_;  // null once the communicator is gone
  Aborting* const outer_;
};

Channels::Channels(std::unique_ptr<Channel> datagrams)
    : datagrams_(std::move(datagrams)), routes_{&datagrams_} {}

Channels::~Channels() {
  Aborting::await_others(*this);
  std::vector<std::function<void()>> closing;
  for (Route* const route : routes_) route->close(closing);
  run_together("close a channel", closing);
}

void Channels::go_by_sites(const collective::SiteMap& sites, const Options& options, bool far) {
  sites_ = std::make_shared<SiteRoute>(sites, *this, options, far);
  routes_.insert(routes_.end() - 1, sites_.get());
}

void Channels::go_near(std::shared_ptr<NearRoute> near) {
  near_ = std::move(near);
  routes_.insert(routes_.begin(), near_.get());
}

// Returns the first route that takes the call, from routes_[first] on. A call with wrong arguments
// goes to the last route, which tells peers that the call is refused.
Route& Channels::route_of(const collective::OperationSpec& spec, std::size_t first) const {
  for (std::size_t i = first; i + 1 < routes_.size() && !forked(); ++i) {
    if (!routes_[i]->takes(spec)) continue;
    return *(collective::validate(spec, rank(), size()).ok() ? routes_[i] : routes_.back());
  }
  return *routes_.back();
}

Channel::Place Channels::take_place(const collective::OperationSpec& spec) {
  if (!collective::is_collective(spec.kind) || forked()) return {};
  if (routes_.size() == 1 && lanes() == 1) return {};
  const std::lock_guard lock(order_->mutex);
  const std::uint64_t place = order_->taken++;
  if (near_ != nullptr) near_->pass(place);
  return place;
}

std::shared_ptr<WorkState> Channels::start(const collective::OperationSpec& spec) {
  Route& route = route_of(spec, 0);
  return route.start(spec, route.takes_places() ? Channel::Place() : take_place(spec));
}

Result<CollectiveReport> Channels::run(const collective::OperationSpec& spec) {
  if (driving::in_callback()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "%s: a callback must not wait; use the asynchronous twin",
                         to_string(spec.kind));
  }
  Route& route = route_of(spec, 0);
  return route.run(spec, route.takes_places() ? Channel::Place() : take_place(spec));
}

std::shared_ptr<WorkState> Channels::start_past_memory(const collective::OperationSpec& spec,
                                                       Channel::Place place) {
  return route_of(spec, past_memory()).start(spec, place);
}

bool Channels::peer_left() const {
  return datagrams_.peer_left() || (near_ != nullptr && !forked() && near_->peer_left());
}

Result<std::shared_ptr<near::Region>> Channels::allocate(std::size_t bytes) {
  if (forked()) return driving::forked();
  if (near_ != nullptr) return near_->allocate(bytes);
  auto memory = near::Mapping::anonymous(bytes);
  if (!memory.ok()) return memory.status();
  return std::make_shared<near::Region>(std::move(*memory));
}

Lineage::Lineage(const Channels& parent) : kept_(parent.kept_) {
  for (const auto& lane : parent.datagrams_.lanes()) lanes_.push_back(of(*lane));
}

std::unique_ptr<Channel> Lineage::derive(const Parent& parent, const Options& options,
                                         std::span<const Rank> ranks, std::uint32_t epoch,
                                         std::span<const Rank> names) {
  protocol::EndpointConfig config = parent.config;
  std::vector<Rank> slots;
  config.window_bytes.clear();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == parent.config.self) config.self = static_cast<Rank>(i);
    slots.push_back(parent.slots[ranks[i]]);
    config.window_bytes.push_back(parent.config.window_bytes[ranks[i]]);
  }
  config.size = static_cast<int>(ranks.size());
  config.epoch = epoch;
  config.names.assign(names.begin(), names.end());
  config.seed = keyed_hash(parent.config.seed, epoch, 0, 0, 0);
  // A communicator of only some ranks uses no multicast, because the other ranks of the parent
  // would receive it, too.
  config.multicast &= config.size == parent.config.size;
  return open_channel(options, parent.driver, config, std::move(slots));
}

std::unique_ptr<Channels> Lineage::derive(const Options& options, std::span<const Rank> ranks,
                                          std::uint32_t epoch, std::span<const Rank> names) const {
  auto derived = std::make_unique<Channels>(derive(lanes_[0], options, ranks, epoch, names));
  std::vector<std::unique_ptr<Channel>> further;
  for (std::size_t lane = 1; lane < lanes_.size(); ++lane) {
    const Options own = options_of_lane(options, static_cast<int>(lane));
    further.push_back(derive(lanes_[lane], own, ranks, epoch, names));
  }
  derived->use_lanes(std::move(further));
  derived->kept_ = kept_;
  return derived;
}

std::uint32_t Channels::count_shrink(std::uint64_t group) {
  const std::lock_guard lock(shrinks_mutex_);
  return shrinks_[group]++;
}

void Channels::abort(const char* how) {
  const Aborting aborting(*this);
  for (Route* const route : routes_) route->abort(how);
}

void Channels::abort_past_memory(const char* how) {
  for (std::size_t i = past_memory(); i < routes_.size(); ++i) routes_[i]->abort(how);
}

StatusCode Channels::state() const {
  return forked() ? StatusCode::kUnavailable : datagrams_.state();
}

Status Channels::status() const {
  return forked() ? driving::forked() : datagrams_.status();
}

Channel::Counters Channels::counters() {
  Channel::Counters rows;
  if (forked()) return rows;
  for (auto route = routes_.rbegin(); route != routes_.rend(); ++route)
    (*route)->add_counters(rows);
  return rows;
}

std::size_t window_to(const Options& options, std::size_t receive_buffer_bytes, int size) {
  return protocol::window_bytes(receive_buffer_bytes, static_cast<std::size_t>(size - 1),
                                options.congestion != CongestionControl::none,
                                options.window_bytes);
}

Result<std::unique_ptr<Channel>> make_channel(const Options& options, TransportKind kind,
                                              const protocol::EndpointConfig& config,
                                              std::unique_ptr<DatagramTransport> transport,
                                              const rendezvous::Group* group) {
  auto driver = make_driver(options, kind, config.self, std::move(transport), group);
  if (!driver.ok()) return driver.status();
  std::vector<Rank> slots(config.size);
  std::iota(slots.begin(), slots.end(), Rank{0});
  return open_channel(options, std::move(*driver), config, std::move(slots));
}

std::unique_ptr<Channel> open_channel(const Options& options,
                                      std::shared_ptr<driving::Driver> driver,
                                      protocol::EndpointConfig config, std::vector<Rank> slots) {
  config.sum_payloads = !driver->limits().intact;
  config.peer_timeout = options.peer_timeout == no_deadline ? Duration(0) : options.peer_timeout;
  return std::make_unique<Channel>(std::move(driver), config, std::move(slots),
                                   options.communicator_name);
}

Result<std::shared_ptr<driving::Driver>> make_driver(const Options& options, TransportKind kind,
                                                     Rank self,
                                                     std::unique_ptr<DatagramTransport> transport,
                                                     const rendezvous::Group* group,
                                                     std::uint8_t lane) {
  driving::Layers layers;
  layers.where = layers.lengths = dynamic_cast<transport::Whereabouts*>(transport.get());
  std::vector<Rank> slots(group == nullptr ? 0 : group->datagrams.members.size());
  std::iota(slots.begin(), slots.end(), Rank{0});
  if (group != nullptr && group->keys != nullptr) {
    auto sealing = seal_transport(std::move(transport), lane);
    if (Status status = introduce(*group->keys, self, slots, lane, *sealing); !status.ok())
      return status;
    layers.sealed = sealing.get();
    transport = std::move(sealing);
  }
  if (group != nullptr && kind == TransportKind::udp && may_share_memory(options)) {
    transport = with_memory(std::move(transport), layers.mixed);
    if (layers.mixed != nullptr) meet_by_memory(*group, self, slots, *layers.mixed);
  }
  // Further lanes have no congestion control of their own: they send within the share of lane 0.
  const congestion::Settings congestion = lane == 0 ? settings_of(options) : congestion::Settings();
  if (!options.faults.any()) {
    return driving::Driver::start(kind, observe::traced(std::move(transport), options), congestion,
                                  layers);
  }
  auto plan = impairment::FaultPlan::create(options.faults);
  if (!plan.ok()) return plan.status();
  auto faulty = std::make_unique<transport::FaultTransport>(std::move(transport), self,
                                                            std::move(*plan), driving::steady_now);
  layers.faults = faulty.get();
  return driving::Driver::start(kind, observe::traced(std::move(faulty), options), congestion,
                                layers);
}

}  // namespace leeway::internal
