// Channels of a Communicator: that of its datagrams, and those of its further lanes.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "collective/site_map.h"
#include "driving/channel.h"
#include "leeway/communicator.h"
#include "near/regions.h"
#include "rendezvous/bootstrap.h"

namespace leeway::internal {

using driving::Channel;

class Channels;
class Hierarchy;
class Lanes;
class NearCalls;

// Source for communicators of the same ranks, or of a part of them. It may outlive the communicator
// that it was made from.
class Lineage {
 public:
  explicit Lineage(const Channels& parent);

  Rank rank() const { return datagrams_.config.self; }
  int size() const { return datagrams_.config.size; }

  // Makes a communicator of these ranks of the parent, in this order; this process must be among
  // them. `epoch`: agreed, never 0. `names`: by its ranks, the names by which people know them; if
  // empty, they go by their ranks in it. May be called on any thread.
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

  Parent datagrams_;
  std::vector<Parent> lanes_;  // lane 1 and up
  std::vector<std::shared_ptr<void>> kept_;
};

class Channels {
 public:
  explicit Channels(std::unique_ptr<Channel> datagrams);

  // Closes all channels at the same time: each may have to wait for peers.
  ~Channels();

  // Configuration of the datagrams' channel.
  const protocol::EndpointConfig& config() const { return datagrams_->config(); }
  Rank rank() const { return config().self; }
  int size() const { return config().size; }

  Channel& datagrams() { return *datagrams_; }
  // As driving::Channel::forked().
  bool forked() const { return datagrams_->forked(); }

  // Sends large calls of the datagrams' in slices from now on, over that channel, which is lane 0,
  // and over `further`. All ranks must call this, or none.
  void use_lanes(std::vector<std::unique_ptr<Channel>> further);
  int lanes() const;

  // Starts a call for a caller that does not wait.
  std::shared_ptr<WorkState> start(const collective::OperationSpec& spec);
  Result<CollectiveReport> run(const collective::OperationSpec& spec);
  // The same, but never directly through memory. `place`: of a collective, among all of the
  // communicator.
  std::shared_ptr<WorkState> start_by_datagrams(const collective::OperationSpec& spec,
                                                Channel::Place place);
  Result<CollectiveReport> run_by_datagrams(const collective::OperationSpec& spec,
                                            Channel::Place place);

  // Sends calls that are large enough inside sites and between them from now on. All ranks must
  // call this, or none. `far` is as in hierarchy.h.
  void go_by_sites(const collective::SiteMap& sites, const Options& options, bool far);

  // Sends calls for which NearCalls::takes() is true through memory that all ranks map from now on.
  // All ranks must call this, or none.
  void go_near(std::shared_ptr<NearCalls> near);
  // All ranks must call this, in the order of their calls. Returns ordinary memory if there is none
  // that all ranks share.
  Result<std::shared_ptr<near::Region>> allocate(std::size_t bytes);

  // Keeps an object until this communicator has gone. With keep() it lives until all that derive
  // from it have gone, too.
  void keep_alone(std::shared_ptr<void> thing) { kept_alone_.push_back(std::move(thing)); }
  void keep(std::shared_ptr<void> thing) { kept_.push_back(std::move(thing)); }

  // Returns how many times shrink() was called before to make this group. Exactly its members make
  // it, so they count alike, whatever other groups do.
  std::uint32_t count_shrink(std::uint64_t group);

  // As Communicator::notify_payload().
  void ring() { datagrams_->ring(); }

  // The destructor waits for calls of abort() on other threads. A call that abort() ends may return
  // before abort() does, and its caller may destroy the communicator.
  void abort(const char* how = driving::kAborted);
  // Does abort()'s part for datagrams. It does not wait.
  void abort_datagrams(const char* how);
  // Returns the first state of all channels that is not kOk.
  StatusCode state() const;
  Status status() const;
  // Returns true if a peer has left any of the channels.
  bool peer_left() const;

  Status register_memory(ByteSpan memory) { return datagrams_->register_memory(memory); }
  void forget_memory(ByteSpan memory) { datagrams_->forget_memory(memory); }

  // Names of rows of lane 1 begin with "lane1_", and count for the whole process on that lane.
  // Calls between sites are counted by their three communicators (hierarchy.h).
  Channel::Counters counters();

 private:
  friend class Lineage;
  class Aborting;
  Status check(const collective::OperationSpec& spec) const;
  // Takes the place of a collective that does not go directly through memory, and notes that in
  // near_. Returns nullopt if each channel counts by itself.
  Channel::Place take_place(const collective::OperationSpec& spec);
  bool goes_near(const collective::OperationSpec& spec) const;
  // Starts a call that needs more than one operation of the channels. Returns null for others.
  std::shared_ptr<WorkState> start_parted(const collective::OperationSpec& spec,
                                          Channel::Place place);
  // Visits all channels except the datagrams'.
  template <typename Visit>
  void visit_further(const Visit& visit) const;

  std::vector<std::shared_ptr<void>> kept_;
  std::vector<std::shared_ptr<void>> kept_alone_;
  std::unique_ptr<Channel> datagrams_;
  std::unique_ptr<Lanes> lanes_;          // may be null
  std::shared_ptr<Hierarchy> hierarchy_;  // may be null
  std::shared_ptr<NearCalls> near_;       // may be null
  std::atomic<std::uint64_t> places_{0};  // places taken, if no memory is shared
  std::atomic<int> aborting_{0};          // threads in abort()
  std::mutex shrinks_mutex_;
  std::map<std::uint64_t, std::uint32_t> shrinks_;  // by group
};

// Returns the options' settings for pacing.
inline congestion::Settings settings_of(const Options& options) {
  return {.control = options.congestion, .rate_bits_per_second = options.rate_bits_per_second};
}

// Returns the bytes that may be in flight to a peer whose system queues `receive_buffer_bytes` for
// all its senders together. It is more if this process is paced.
std::size_t window_to(const Options& options, std::size_t receive_buffer_bytes, int size);

// Makes a driver over a connected transport, with the faults of the options, if any, between them.
// `self`: this process's slot, by which the faults know it. `group`: its ranks are the slots; with
// its keys the driver seals for them, and it may share memory with those of this host. If null, it
// does neither. `lane`: keys of a pair of processes differ by it.
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

// Makes the first channel on a driver of its own, whose slots are the ranks.
Result<std::unique_ptr<Channel>> make_channel(const Options& options, TransportKind kind,
                                              const protocol::EndpointConfig& config,
                                              std::unique_ptr<DatagramTransport> transport,
                                              const rendezvous::Group* group = nullptr);

}  // namespace leeway::internal
