// What stands behind a Communicator: the channel of its datagrams and, where ranks have such a
// lane, a second one for exact calls.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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

// What communicators of the same ranks, or of a part of them, are made from. It outlives the
// communicator that it is of.
class Lineage {
 public:
  explicit Lineage(const Channels& parent);

  Rank rank() const { return datagrams_.config.self; }
  int size() const { return datagrams_.config.size; }

  // A communicator of these ranks of the parent, in this order, this process among them. `epoch`:
  // agreed, never 0. `names`: by its ranks, how people know them; empty: by these. Any thread.
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
  std::optional<Parent> exact_;
  std::vector<Parent> lanes_;  // lane 1 and up
  std::vector<std::shared_ptr<void>> kept_;
};

class Channels {
 public:
  explicit Channels(std::unique_ptr<Channel> datagrams);

  // Closes all at the same time: each may have to wait for peers.
  ~Channels();

  // Both have the same ranks; the rest is of the datagrams.
  const protocol::EndpointConfig& config() const { return datagrams_->config(); }
  Rank rank() const { return config().self; }
  int size() const { return config().size; }

  Channel& datagrams() { return *datagrams_; }
  // As driving::Channel::forked().
  bool forked() const { return datagrams_->forked(); }
  const Channel& exact() const { return exact_ ? *exact_ : *datagrams_; }

  // From now on `channel` carries calls that are exact in both halves. All ranks say so at the same
  // place in the order of their calls, or none.
  void use_for_exact(std::unique_ptr<Channel> channel) { exact_ = std::move(channel); }

  // From now on large calls of the datagrams' go in slices over that channel, which is lane 0, and
  // these. On all ranks or none.
  void use_lanes(std::vector<std::unique_ptr<Channel>> further);
  int lanes() const;

  // For a caller that does not wait.
  std::shared_ptr<WorkState> start(const collective::OperationSpec& spec);
  Result<CollectiveReport> run(const collective::OperationSpec& spec);
  // The same, but not straight through memory. `place` is a collective's among all of the
  // communicator.
  std::shared_ptr<WorkState> start_by_datagrams(const collective::OperationSpec& spec,
                                                Channel::Place place);
  Result<CollectiveReport> run_by_datagrams(const collective::OperationSpec& spec,
                                            Channel::Place place);

  // From now on calls that are large enough go inside sites and between them. On all ranks or none;
  // `far` as in hierarchy.h.
  void go_by_sites(const collective::SiteMap& sites, const Options& options, bool far);

  // From now on calls that it takes go through memory that all ranks map. On all ranks or none.
  void go_near(std::shared_ptr<NearCalls> near);
  // On all ranks, in the order of their calls. Ordinary memory where no rank can share it with all.
  Result<std::shared_ptr<near::Region>> allocate(std::size_t bytes);

  // Goes when this communicator has gone, and with keep() all that derive from it.
  void keep_alone(std::shared_ptr<void> thing) { kept_alone_.push_back(std::move(thing)); }
  void keep(std::shared_ptr<void> thing) { kept_.push_back(std::move(thing)); }

  // How often shrink() was called before to make this group. Exactly its members make it, so they
  // count alike; other groups' shrinks are no business of theirs.
  std::uint32_t count_shrink(std::uint64_t group);

  // As Communicator::notify_payload().
  void ring();

  // The destructor waits for those that other threads are in: a call that abort() ends may return
  // before abort() does, and its caller destroy the communicator.
  void abort(const char* how = driving::kAborted);
  // What abort() does to datagrams. It waits for nobody.
  void abort_datagrams(const char* how);
  // The first of all channels that is not kOk.
  StatusCode state() const;
  Status status() const;
  // Of any.
  bool peer_left() const;

  // With both channels, or neither.
  Status register_memory(ByteSpan memory);
  void forget_memory(ByteSpan memory);

  // Names of the channel of exact calls begin with "exact_", of lane 1 with "lane1_", which counts
  // what the process does on that lane. Calls between sites are counted by
  // their three communicators (hierarchy.h).
  Channel::Counters counters();

 private:
  friend class Lineage;
  class Aborting;
  Channel& channel_of(const collective::OperationSpec& spec);
  Status check(const collective::OperationSpec& spec) const;
  // Takes the place of a collective that does not go straight through memory, and notes that there.
  // Returns nullopt if each channel counts by itself.
  Channel::Place take_place(const collective::OperationSpec& spec);
  bool goes_near(const collective::OperationSpec& spec) const;
  // Starts a call that needs more than one operation of the channels. Returns null for others.
  std::shared_ptr<WorkState> start_parted(const collective::OperationSpec& spec,
                                          Channel::Place place);
  // Of the channels but the datagrams'.
  template <typename Visit>
  void visit_further(const Visit& visit) const;

  std::vector<std::shared_ptr<void>> kept_;
  std::vector<std::shared_ptr<void>> kept_alone_;
  std::unique_ptr<Channel> datagrams_;
  std::unique_ptr<Channel> exact_;        // may be null
  std::unique_ptr<Lanes> lanes_;          // may be null
  std::shared_ptr<Hierarchy> hierarchy_;  // may be null
  std::shared_ptr<NearCalls> near_;       // may be null
  std::atomic<std::uint64_t> places_{0};  // taken, where no memory is shared
  std::atomic<int> aborting_{0};          // threads in abort()
  std::mutex shrinks_mutex_;
  std::map<std::uint64_t, std::uint32_t> shrinks_;  // by group
};

// What the options say about pacing.
inline congestion::Settings settings_of(const Options& options) {
  return {.control = options.congestion, .rate_bits_per_second = options.rate_bits_per_second};
}

// What may be in flight to a peer whose system queues `receive_buffer_bytes` for all its senders
// together; more where this process is paced.
std::size_t window_to(const Options& options, std::size_t receive_buffer_bytes, int size);

// A driver over a connected transport, with the faults of the options, if any, between them.
// `self`: this process's slot, by which the faults know it. `group`: whose ranks are the slots;
// with its keys it seals for them, and it may share memory with those of this host. Null: neither.
// `lane`: keys of a pair of processes differ by it.
Result<std::shared_ptr<driving::Driver>> make_driver(const Options& options, TransportKind kind,
                                                     Rank self,
                                                     std::unique_ptr<DatagramTransport> transport,
                                                     const rendezvous::Group* group,
                                                     std::uint8_t lane = 0);

// A communicator's channel on a driver whose transport knows the processes in `slots`, by rank.
std::unique_ptr<Channel> open_channel(const Options& options,
                                      std::shared_ptr<driving::Driver> driver,
                                      protocol::EndpointConfig config, std::vector<Rank> slots);

// The first channel on a driver of its own, whose slots are the ranks.
Result<std::unique_ptr<Channel>> make_channel(const Options& options, TransportKind kind,
                                              const protocol::EndpointConfig& config,
                                              std::unique_ptr<DatagramTransport> transport,
                                              const rendezvous::Group* group = nullptr);

}  // namespace leeway::internal
