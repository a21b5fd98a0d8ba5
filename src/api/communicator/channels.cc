#include "communicator/channels.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "base/philox.h"
#include "base/thread.h"
#include "communicator/hierarchy.h"
#include "communicator/lanes.h"
#include "communicator/memory_sharing.h"
#include "communicator/near_calls.h"
#include "communicator/sealing.h"
#include "driving/fork.h"
#include "impairment/fault_plan.h"
#include "observe/trace.h"
#include "protocol/window.h"
#include "transport/fault/fault_transport.h"

namespace leeway::internal {

// Marks that this thread is in abort(). Callbacks that it calls from there may end the
// communicator.
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

  // Waits until no other thread is in abort(). This thread's own calls cannot end before it has
  // destroyed the communicator.
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

Channels::Channels(std::unique_ptr<Channel> datagrams) : datagrams_(std::move(datagrams)) {}

Channels::~Channels() {
  Aborting::await_others(*this);
  if (hierarchy_ != nullptr) hierarchy_->close();
  if (lanes_ != nullptr && driving::in_callback())
    lanes_->abort(driving::kDestroyed);  // as channels do by themselves
  std::vector<std::function<void()>> closing;
  if (near_ != nullptr && near_->close()) closing.emplace_back([this] { near_->close_side(); });
  if (lanes_ != nullptr) lanes_->close(closing);
  closing.emplace_back([this] { datagrams_.reset(); });
  run_together("close a channel", closing);
}

void Channels::use_lanes(std::vector<std::unique_ptr<Channel>> further) {
  lanes_ = std::make_unique<Lanes>(*datagrams_, std::move(further));
}

int Channels::lanes() const {
  return lanes_ == nullptr ? 1 : static_cast<int>(lanes_->further().size()) + 1;
}

Status Channels::check(const collective::OperationSpec& spec) const {
  return collective::validate(spec, rank(), size());
}

bool Channels::goes_near(const collective::OperationSpec& spec) const {
  return near_ != nullptr && NearCalls::takes(spec) && check(spec).ok();
}

Channel::Place Channels::take_place(const collective::OperationSpec& spec) {
  if (!collective::is_collective(spec.kind) || forked()) return {};
  if (near_ != nullptr) return near_->note_elsewhere();
  if (lanes_ == nullptr && hierarchy_ == nullptr) return {};
  return places_++;
}

template <typename Visit>
void Channels::visit_further(const Visit& visit) const {
  if (lanes_ == nullptr) return;
  for (const auto& lane : lanes_->further()) visit(*lane);
}

// A call with wrong arguments goes to its channel, which tells peers so.
std::shared_ptr<WorkState> Channels::start_parted(const collective::OperationSpec& spec,
                                                  Channel::Place place) {
  if (!place) return nullptr;
  const bool by_sites = hierarchy_ != nullptr && hierarchy_->takes(spec);
  const bool by_lanes = lanes_ != nullptr && lanes_->takes(spec);
  if (!(by_sites || by_lanes) || !check(spec).ok()) return nullptr;
  return by_sites ? hierarchy_->start(spec, *place) : lanes_->start(spec, *place);
}

std::shared_ptr<WorkState> Channels::start(const collective::OperationSpec& spec) {
  if (goes_near(spec)) return near_->start(spec);
  return start_by_datagrams(spec, take_place(spec));
}

std::shared_ptr<WorkState> Channels::start_by_datagrams(const collective::OperationSpec& spec,
                                                        Channel::Place place) {
  if (auto work = start_parted(spec, place)) return work;
  return datagrams_->start(spec, place);
}

Result<CollectiveReport> Channels::run(const collective::OperationSpec& spec) {
  if (driving::in_callback()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "%s: a callback must not wait; use the asynchronous twin",
                         to_string(spec.kind));
  }
  if (goes_near(spec)) return near_->run(spec);
  return run_by_datagrams(spec, take_place(spec));
}

Result<CollectiveReport> Channels::run_by_datagrams(const collective::OperationSpec& spec,
                                                    Channel::Place place) {
  if (const auto work = start_parted(spec, place)) return driving::Driver::wait(*work);
  return datagrams_->run(spec, place);
}

void Channels::go_near(std::shared_ptr<NearCalls> near) {
  near_ = std::move(near);
}

Result<std::shared_ptr<near::Region>> Channels::allocate(std::size_t bytes) {
  if (forked()) return driving::forked();
  if (near_ != nullptr) return near_->allocate(bytes);
  auto memory = near::Mapping::anonymous(bytes);
  if (!memory.ok()) return memory.status();
  return std::make_shared<near::Region>(std::move(*memory));
}

void Channels::go_by_sites(const collective::SiteMap& sites, const Options& options, bool far) {
  hierarchy_ = std::make_shared<Hierarchy>(sites, *this, options, far);
}

Lineage::Lineage(const Channels& parent) : datagrams_(of(*parent.datagrams_)), kept_(parent.kept_) {
  if (parent.lanes_ == nullptr) return;
  for (const auto& lane : parent.lanes_->further()) lanes_.push_back(of(*lane));
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
  // A multicast for some of the ranks would be heard by all others, too.
  config.multicast &= config.size == parent.config.size;
  return open_channel(options, parent.driver, config, std::move(slots));
}

std::unique_ptr<Channels> Lineage::derive(const Options& options, std::span<const Rank> ranks,
                                          std::uint32_t epoch, std::span<const Rank> names) const {
  auto derived = std::make_unique<Channels>(derive(datagrams_, options, ranks, epoch, names));
  std::vector<std::unique_ptr<Channel>> further;
  for (const Parent& lane : lanes_) {
    const Options own = options_of_lane(options, static_cast<int>(further.size()) + 1);
    further.push_back(derive(lane, own, ranks, epoch, names));
  }
  if (!further.empty()) derived->use_lanes(std::move(further));
  derived->kept_ = kept_;
  return derived;
}

std::uint32_t Channels::count_shrink(std::uint64_t group) {
  const std::lock_guard lock(shrinks_mutex_);
  return shrinks_[group]++;
}

void Channels::abort(const char* how) {
  const Aborting aborting(*this);
  if (hierarchy_ != nullptr) hierarchy_->abort(how);
  if (near_ != nullptr) near_->abort(how);
  abort_datagrams(how);
}

void Channels::abort_datagrams(const char* how) {
  datagrams_->abort(how);
  visit_further([how](Channel& channel) { channel.abort(how); });
}

StatusCode Channels::state() const {
  if (forked()) return StatusCode::kUnavailable;
  StatusCode state = datagrams_->state();
  visit_further([&](const Channel& channel) {
    if (state == StatusCode::kOk) state = channel.state();
  });
  return state;
}

bool Channels::peer_left() const {
  bool left = datagrams_->peer_left();
  visit_further([&](const Channel& channel) { left |= channel.peer_left(); });
  return left;
}

Status Channels::status() const {
  if (forked()) return driving::forked();
  Status status = datagrams_->status();
  visit_further([&](Channel& channel) {
    if (status.ok()) status = channel.status();
  });
  return status;
}

Channel::Counters Channels::counters() {
  Channel::Counters rows;
  if (forked()) return rows;
  datagrams_->add_counters("", rows);
  for (std::size_t i = 0; lanes_ != nullptr && i < lanes_->further().size(); ++i)
    lanes_->further()[i]->add_counters("lane" + std::to_string(i + 1) + "_", rows);
  if (hierarchy_ != nullptr) hierarchy_->add_counters(rows);
  if (near_ != nullptr) near_->add_counters(rows);
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
  layers.lengths = dynamic_cast<transport::LengthRefusals*>(transport.get());
  layers.where = dynamic_cast<transport::Whereabouts*>(transport.get());
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
  // Further lanes send within the share of the first.
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
