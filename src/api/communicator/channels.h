// The routes by which the calls of a communicator go (route.h), and the channels of its datagrams.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "collective/site_map.h"
#include "communicator/datagram_route.h"
#include "communicator/route.h"
#include "leeway/communicator.h"
#include "near/regions.h"
#include "rendezvous/group.h"

namespace leeway::internal {

class Channels;
class NearRoute;
class SiteRoute;

// Makes communicators of all or some ranks of an existing one, the parent. A Lineage may outlive
// the parent.
class Lineage {
 public:
  explicit Lineage(const Channels& parent);

  Rank rank() const { return lanes_[0].config.self; }
  int size() const { return lanes_[0].config.size; }

  // Makes a communicator of these ranks of the parent, in this order; this process must be among
  // them. `epoch`: equal on all these ranks, never 0. `names`: for each new rank, the number that
  // texts show; if empty, texts show the new rank. May be called on any thread.
  std::unique_ptr<Channels> derive(const Options& options, std::span<const Rank> ranks,
                                   std::uint32_t epoch, std::span<const Rank> names = {}) const;

 private:
  struct Parent {
    std::shared_ptr<driving::Driver> driver;
    protocol::EndpointConfig config;
    std::vector<Rank> slots;
  };
  static Parent of(const Channel& channel) {
    return {channel.driver(), channel.config(), channel.slots()};
  }
  static std::unique_ptr<Channel> derive(const Parent& parent, const Options& options,
                                         std::span<const Rank> ranks, std::uint32_t epoch,
                                         std::span<const Rank> names);

  std::vector<Parent> lanes_;
  std::vector<std::shared_ptr<void>> kept_;
};

class Channels {
 public:
  explicit Channels(std::unique_ptr<Channel> datagrams);

  // Closes all channels at the same time, because each may have to wait for peers.
  ~Channels();

  // Configuration of lane 0.
  const protocol::EndpointConfig& config() const { return datagrams_.first().config(); }
  Rank rank() const { return config().self; }
  int size() const { return config().size; }

  // Lane 0 of the datagrams.
  Channel& datagrams() { return datagrams_.first(); }
  // Returns true in a forked child, where calls fail.
  bool forked() const { return datagrams_.first().forked(); }
  const std::shared_ptr<CallOrder>& order() const { return order_; }

  // Adds lanes for the datagrams of later calls. If one rank calls this function, all ranks must.
  // go_by_sites() and go_near(), too, must each be called by all ranks or by none.
  void use_lanes(std::vector<std::unique_ptr<Channel>> further) {
    datagrams_.add(std::move(further));
  }
  int lanes() const { return static_cast<int>(datagrams_.lanes().size()); }
  // From now on, large calls go inside sites and between them. `far`: see SiteRoute.
  void go_by_sites(const collective::SiteMap& sites, const Options& options, bool far);
  // From now on, the calls that `near` takes go through memory that all ranks map.
  void go_near(std::shared_ptr<NearRoute> near);

  // Starts a call for a caller that does not wait.
  std::shared_ptr<WorkState> start(const collective::OperationSpec& spec);
  Result<CollectiveReport> run(const collective::OperationSpec& spec);
  // Like Route::hold() and Route::start(), on the first route that takes the call and is not
  // memory. `place`: the collective's place among all collectives of the communicator.
  Route::StandIns hold_past_memory(const collective::OperationSpec& spec, Channel::Place place) {
    return route_of(spec, past_memory()).hold(spec, place);
  }
  std::shared_ptr<WorkState> start_past_memory(const collective::OperationSpec& spec,
                                               Channel::Place place);
  // Returns memory that the other ranks can read, or ordinary memory if ranks share none. All ranks
  // must call this function, at the same place in the order of their calls.
  Result<std::shared_ptr<near::Region>> allocate(std::size_t bytes);

  // keep_alone() keeps an object until this communicator has gone; keep(), until all communicators
  // derived from it have gone, too.
  void keep_alone(std::shared_ptr<void> thing) { kept_alone_.push_back(std::move(thing)); }
  void keep(std::shared_ptr<void> thing) { kept_.push_back(std::move(thing)); }

  // Returns how often shrink() was called before for this group of remaining ranks. Only members of
  // the group make such calls, so all members get the same number.
  std::uint32_t count_shrink(std::uint64_t group);

  // As Communicator::notify_payload().
  void ring() { datagrams().ring(); }

  // Fails all calls. A call that abort() ends may return before abort() does, and its caller may
  // then destroy the communicator. So the destructor waits until no other thread is in abort().
  void abort(const char* how = driving::kAborted);
  // Aborts all routes but memory. It does not wait.
  void abort_past_memory(const char* how);
  // Like DatagramRoute::state(), but kUnavailable in a forked child.
  StatusCode state() const;
  Status status() const;
  bool peer_left() const;

  Status register_memory(ByteSpan memory) { return datagrams().register_memory(memory); }
  void forget_memory(ByteSpan memory) { datagrams().forget_memory(memory); }

  // Returns the counters of all routes.
  Channel::Counters counters();

 private:
  friend class Lineage;
  class Aborting;
  // Returns the first route that takes the call, from routes_[first] on.
  Route& route_of(const collective::OperationSpec& spec, std::size_t first) const;
  std::size_t past_memory() const { return near_ == nullptr ? 0 : 1; }
  // Takes the next place in the order of collectives, for a route that does not take places itself.
  // Returns nullopt for messages. Also returns nullopt if there is only one route and lane, because
  // the channel then numbers the calls.
  Channel::Place take_place(const collective::OperationSpec& spec);

  std::vector<std::shared_ptr<void>> kept_;
  std::vector<std::shared_ptr<void>> kept_alone_;
  const std::shared_ptr<CallOrder> order_ = std::make_shared<CallOrder>();
  DatagramRoute datagrams_;
  std::shared_ptr<SiteRoute> sites_;  // may be null
  std::shared_ptr<NearRoute> near_;   // may be null
  std::vector<Route*> routes_;        // in order of preference; the last one is datagrams_
  std::atomic<int> aborting_{0};      // threads in abort()
  std::mutex shrinks_mutex_;
  std::map<std::uint64_t, std::uint32_t> shrinks_;  // by group
};

// Returns the options' settings for pacing.
inline congestion::Settings settings_of(const Options& options) {
  return {.control = options.congestion, .rate_bits_per_second = options.rate_bits_per_second};
}

// Returns the bytes that may be in flight to a peer whose system queues `receive_buffer_bytes` for
// all its senders together. Congestion control raises the number.
std::size_t window_to(const Options& options, std::size_t receive_buffer_bytes, int size);

// Makes a driver over a connected transport. Injected faults, if the options ask for any, lie
// between driver and transport, and know this process as slot `self`. The ranks of `group` are the
// transport's slots. If the group has keys, the driver seals for it. The driver may share memory
// with ranks of this host. Without a group the driver neither seals nor shares memory. `lane`: each
// lane has its own keys for a pair of processes.
Result<std::shared_ptr<driving::Driver>> make_driver(const Options& options, TransportKind kind,
                                                     Rank self,
                                                     std::unique_ptr<DatagramTransport> transport,
                                                     const rendezvous::Group* group,
                                                     std::uint8_t lane = 0);

// Opens a communicator's channel on a driver whose transport knows the processes in `slots`, by
// rank.
std::unique_ptr<Channel> open_channel(const Options& options,
                                      std::shared_ptr<driving::Driver> driver,
                                      protocol::EndpointConfig config, std::vector<Rank> slots);

// Makes a driver whose slots are the ranks, and the first channel on it.
Result<std::unique_ptr<Channel>> make_channel(const Options& options, TransportKind kind,
                                              const protocol::EndpointConfig& config,
                                              std::unique_ptr<DatagramTransport> transport,
                                              const rendezvous::Group* group = nullptr);

}  // namespace leeway::internal
