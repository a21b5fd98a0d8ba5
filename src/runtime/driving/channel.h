// One communicator on one driver: its operations in flight, its state, and its end.
//
// Sources: channel.cc (what callers ask for), channel_paths.cc (proofs before the first call),
// channel_counters.cc.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driving/driver.h"
#include "driving/path_facts.h"

namespace leeway::driving {

// Texts that say how calls in progress ended.
inline constexpr const char* kAborted = "was aborted";
inline constexpr const char* kDestroyed = "was destroyed";

// The constructor joins the driver. Then come prove_paths(), prove_memory() and agree_on_size(), as
// far as the caller wants them, and then operations. abort() may be called at any time, and the
// destructor leaves the group. The first error stays the channel's state; only abort() replaces it.
class Channel final : private MemoryWatcher {
 public:
  using Counters = std::vector<std::pair<std::string, std::uint64_t>>;

  // `slots`: the processes of the ranks, in the numbering of the driver's transport. `name`: shown
  // to people.
  Channel(std::shared_ptr<Driver> driver, const protocol::EndpointConfig& config,
          std::vector<Rank> slots, std::string name = {});
  // Lets operations end for 64 time-outs of the slowest link, cancels the rest, and leaves
  // (protocol/departure.h). Leaving takes a few time-outs if peers answer, and two seconds if a
  // peer is silent. It is immediate if all others are known to be dead, and after abort(). In a
  // callback the destructor aborts.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // The driver's kind; shm where all peers are reached through memory, mixed where some are.
  TransportKind kind() const { return kind_; }
  const protocol::EndpointConfig& config() const { return config_; }
  const std::shared_ptr<Driver>& driver() const { return driver_; }
  const std::vector<Rank>& slots() const { return slots_; }

  // Returns true in a forked child, which has none of the driver's threads: calls fail there.
  bool forked() const { return driver_->forked(); }

  // The caller must hold a Driver::Session, whose pump() then does the pending work.
  collective::Engine& engine();

  // Receives the known facts about the path to a rank (text_of()), if an error has no room for all
  // of them.
  using TellPath = std::function<void(Rank peer, const std::string& facts)>;
  // Waits until datagrams pass to and from every peer, which also measures round trips. Returns
  // kUnavailable naming the peers whose paths failed, or kCancelled after abort(). A channel that
  // fails here or in agree_on_size() is aborted at once: no operation has begun, so no peer waits
  // for its data.
  Status prove_paths(Duration timeout, const TellPath& tell = {});
  // Call it after prove_paths(). Waits half a second at most until each peer of this host has
  // proved that it shares memory, or cannot prove it any more (transport/mixed). After that time
  // calls begin without the proof.
  void prove_memory();
  // Says which ranks do not share memory with this one, and why; if `of_this_host`, only for ranks
  // that might share it.
  std::string memory_obstacles(bool of_this_host);

  // Agrees with all ranks on the length of datagrams: the longest that all ranks' paths carry. Call
  // it after prove_paths(), on all ranks or none. Without `measured`, this rank asks for the length
  // that it has now. Returns kUnavailable if not all ranks say their lengths in time, and
  // kCancelled after abort().
  Status agree_on_size(bool measured, Duration timeout, const TellPath& tell = {});
  // Returns the ranks that do not report that they receive our multicast. Asks for up to a fifth of
  // a second. Call it after prove_paths(), where the transport has multicast.
  std::vector<Rank> deaf_to_multicast();

  // For a caller that waits: begins the operation, and drives until it is done. `place` is as in
  // collective::Request::place.
  using Place = std::optional<std::uint64_t>;
  Result<CollectiveReport> run(const collective::OperationSpec& spec, Place place = {});
  // Begins the operation for a caller that will wait for it next, and drive.
  std::shared_ptr<WorkState> submit(const collective::OperationSpec& spec, Place place = {});
  // Begins the operation for a caller that does something else meanwhile: another thread drives.
  // Operations of one thread begin in the order of its calls to run(), submit() and start().
  std::shared_ptr<WorkState> start(const collective::OperationSpec& spec, Place place = {});
  // Begins a stand-in that holds the place of a collective until an operation of that place begins,
  // or until Driver::end(). The driving thread takes the stand-in up later, before all operations
  // that are started after it. So hold() itself makes no callback.
  std::shared_ptr<WorkState> hold(collective::OperationSpec spec, Place place);
  // Sets whether a call of this communicator through shared memory waits for peers. While `on`, a
  // peer that is silent for the peer time-out counts as dead, as it does while an operation of this
  // channel waits.
  void watch_peers(bool on);
  // Asks peers whether they count this rank as dead, and waits for the answers, at most one
  // time-out of the slowest link. If a peer says so, state() is no longer kOk.
  void ask_whether_given_up();
  // Reports a finished call to the observer as if the call were this channel's. It is for calls
  // that took another route, such as shared memory.
  void note_done(const collective::Request& request);
  // Tells the driver that a payload source or sink has progressed. Any thread.
  void ring();

  // Time that the destructor gives operations to end.
  Duration closing_patience();

  // Makes every operation in flight and every later one fail with kCancelled. Tells peers once, and
  // waits for none of them. `how` is for the texts. Any thread.
  void abort(const char* how = kAborted);
  // Makes every operation for which a caller waits fail with kCancelled. Peers that lack data of
  // operations that are done still get it.
  void cancel_awaited(const char* how);
  // Returns kOk while all is well, else the code with which operations fail. Any thread; one atomic
  // load.
  StatusCode state() const { return state_.load(std::memory_order_acquire); }
  // Returns state() with its text. Sets `about` to the rank that the text names.
  Status status(Rank* about = nullptr);
  // Returns true if a peer has said good-bye, or is dead. Any thread; one atomic load.
  bool peer_left() const { return peer_left_.load(std::memory_order_acquire); }

  // These call DatagramTransport's functions of the same names. Any thread.
  Status register_memory(ByteSpan memory) { return driver_->register_memory(memory); }
  void forget_memory(ByteSpan memory) { driver_->forget_memory(memory); }

  // Adds one row for each counter, with `prefix` before its name.
  void add_counters(const std::string& prefix, Counters& rows);

 private:
  friend class Driver;

  // Register and forget memory of the member. The transport copies what it cannot register.
  void on_allocated(ByteSpan memory) override;
  void before_freed(ByteSpan memory) override;

  protocol::Endpoint& endpoint() { return member_->engine().endpoint(); }
  void probe_all();
  void look_at_links(Driver::Session& session);
  std::shared_ptr<WorkState> work_of(const collective::OperationSpec& spec, Place place) const;
  // Hands the operation to the engine. Only the driving thread calls it.
  void admit(Instant now, const std::shared_ptr<WorkState>& work);
  // Ends an operation of this channel that is not done. Only the driving thread calls it.
  void end(Instant now, WorkState& work, const Status& status, const protocol::Blame& blame);
  // Tells callers which operations are done, but only while no train of this channel is out,
  // because a train may refer to the operations' memory. The driving thread calls it after each
  // step.
  void publish();
  // Makes the error the channel's state, if it is the first. `about`: the rank that it names.
  void note(const Status& status, Rank about = kNoRank);
  // Fills in `view` for people. `since`: time since the last look.
  void look(Duration since, ChannelView& view);
  void look_at_peer(Duration since, bool cut, PeerView& view);
  void leave();
  Status cancelled(const char* how) const;
  void tell_size();
  Status pass_both_ways(Duration timeout, const TellPath& tell);
  bool any_came(const std::vector<bool>& met);
  void probe_who_came(std::vector<bool>& met);
  PathFacts facts_of(Rank peer);
  Status explain(const std::vector<Rank>& broken, const TellPath& tell);
  std::vector<Rank> unmeasured();
  Status settle_size(bool measured, Duration timeout, const TellPath& tell);
  void quit();

  const std::shared_ptr<Driver> driver_;
  protocol::EndpointConfig config_;
  const std::vector<Rank> slots_;
  const std::string name_;
  TransportKind kind_;
  Instant proving_since_;
  // Only the driving thread uses these members.
  collective::Member* member_ = nullptr;
  std::vector<std::shared_ptr<WorkState>> active_;
  std::vector<collective::Request*> finished_;  // requests of active_ that are done
  std::vector<ByteSpan> memory_;                // memory of the member, which the transport knows
  Status failure_;               // status of operations that are asked for after abort()
  Status why_;                   // text of state_
  Rank about_ = kNoRank;         // the rank that why_ names
  std::vector<PeerView> views_;  // copy of each peer's latest view
  std::uint64_t deadline_cuts_seen_ = 0;

  std::atomic<StatusCode> state_{StatusCode::kOk};
  std::atomic<bool> peer_left_{false};
};

}  // namespace leeway::driving
