#include "communicator/site_route.h"

#include <algorithm>
#include <string_view>

#include "base/fnv.h"
#include "base/fork.h"
#include "base/philox.h"
#include "base/thread.h"
#include "transport/shm/host.h"

namespace leeway::internal {
namespace {

using collective::OperationSpec;
using collective::Tier;

// Stream tag of the keyed hash (base/philox.h), for epochs.
constexpr std::uint32_t kSiteStream = 0x53000000;

// Site name that stands for the host on which a process runs.
constexpr std::string_view kHostAsSite = "host";

// Tensors of at least this many bytes go in hops, inside sites and between them. The limit is lower
// if links between sites are far (long or slow), since additional hops cost little against them.
constexpr std::size_t kLeastBytesFar = std::size_t{16} << 10;
constexpr std::size_t kLeastBytesNear = std::size_t{256} << 10;

// Bytes of a piece of a tensor. One piece is in one hop while the piece before it is in the next.
// With a far link pieces are long: each piece costs a round trip between sites, and the hops inside
// sites are too short to be worth hiding.
constexpr std::size_t kPieceBytesFar = std::size_t{64} << 20;
constexpr std::size_t kPieceBytesNear = std::size_t{4} << 20;

// Suffixes of the names of the three communicators (tiers), and prefixes of their counters.
constexpr std::array kNames = {"/reduce", "/across", "/spread"};
constexpr std::array kPrefixes = {"reduce_", "across_", "spread_"};

// Returns a hash of a site's name. It is never 0, because 0 stands for no site.
std::uint64_t digest_of(std::string_view name) {
  return std::max<std::uint64_t>(fnv1a(name), 1);
}

std::size_t bytes_of(const OperationSpec& spec) {
  return std::max(spec.input.bytes(), spec.output.bytes());
}

}  // namespace

Result<std::uint64_t> site_of(const Options& options) {
  if (options.site.empty()) return std::uint64_t{0};
  if (options.site != kHostAsSite) return digest_of(options.site);
  const auto host = transport::this_host();
  if (!host.ok()) return host.status();
  return digest_of({reinterpret_cast<const char*>(host->boot.data()), host->boot.size()});
}

SiteRoute::SiteRoute(const collective::SiteMap& sites, Channels& parent, const Options& options,
                     bool far)
    : sites_(sites),
      parent_(parent),
      generation_(fork_generation()),
      least_bytes_(far ? kLeastBytesFar : kLeastBytesNear),
      piece_bytes_(far ? kPieceBytesFar : kPieceBytesNear) {
  const Lineage lineage(parent);
  for (int tier = 0; tier < collective::kTiers; ++tier) {
    const bool across = static_cast<Tier>(tier) == Tier::across;
    const std::vector<Rank> ranks = across ? sites_.across() : sites_.inside();
    const int group = across ? sites_.place() : sites_.site();
    const std::uint64_t epoch = keyed_hash(parent.config().epoch, static_cast<std::uint32_t>(tier),
                                           kSiteStream, static_cast<Rank>(group), 0);
    Options named = options;
    named.rank = across ? sites_.site() : sites_.place();
    named.world_size = static_cast<int>(ranks.size());
    named.communicator_name += kNames[static_cast<std::size_t>(tier)];
    tiers_[static_cast<std::size_t>(tier)] = lineage.derive(
        named, ranks, std::max<std::uint32_t>(1, static_cast<std::uint32_t>(epoch)), ranks);
  }
}

bool SiteRoute::takes(const OperationSpec& spec) const {
  return collective::HierarchicalCall::takes(spec, sites_) && bytes_of(spec) >= least_bytes_;
}

std::shared_ptr<WorkState> SiteRoute::start(const OperationSpec& spec, Channel::Place place) {
  const Instant now = driving::steady_now();
  const auto call = std::make_shared<Call>(spec, sites_, now, piece_bytes_, *place);
  call->work->driver = parent_.datagrams().driver();
  call->work->request.submitted = now;
  call->stand_in = parent_.datagrams().start(collective::HierarchicalCall::stand_in(spec), place);
  {
    const std::lock_guard lock(mutex_);
    call->work->request.report.sequence = next_sequence_++;
    calls_.push_back(call);
  }
  call->stand_in->call_when_done([weak = weak_from_this(), call] {
    if (const auto self = weak.lock()) self->on_stand_in_done(call);
  });
  advance();
  return call->work;
}

// Handles legs that are over, and begins those that may begin; one thread at a time does so. It
// holds no lock while it begins a leg, because the leg may be over before start() returns, and
// calls back. Callers hear of finished calls last, because they may then end the communicator.
void SiteRoute::advance() {
  const auto self = shared_from_this();
  std::vector<std::shared_ptr<Call>> done;
  {
    std::unique_lock lock(mutex_);
    if (advancing_ != std::thread::id()) return;
    advancing_ = std::this_thread::get_id();
    while (!closed_) {
      const Instant now = driving::steady_now();
      for (const Finished& one : std::exchange(finished_, {})) on_leg_done(one, now);
      const std::vector<Starting> starting = take_startable(now);
      take_done(now, done);
      const std::vector<Ending> endings = std::exchange(endings_, {});
      if (starting.empty() && endings.empty()) break;
      lock.unlock();
      for (const Ending& one : endings) driving::Driver::end(one.work, one.status, one.blame);
      for (const Starting& one : starting) {
        if (!closed_) begin(one);
      }
      lock.lock();
    }
    advancing_ = {};
  }
  for (const auto& call : done) {
    driving::Driver::end(call->stand_in, call->hops.failure());
    driving::Driver::finish(*call->work);
  }
}

// Called under the lock, like end_rest().
void SiteRoute::on_leg_done(const Finished& one, Instant now) {
  Call& call = *one.call;
  std::erase(call.under_way, one.work);
  const bool failed_before = !call.hops.failure().ok();
  call.hops.on_done(*one.leg, one.work->request, now);
  if (!failed_before) end_rest(call);
}

// Ends the stand-in and the legs of a call that has failed. Peers hear of the failure by the
// stand-in, and by the legs for which they wait.
void SiteRoute::end_rest(const Call& call) {
  const Status& failure = call.hops.failure();
  if (failure.ok()) return;
  endings_.push_back({call.stand_in, failure, call.hops.blame()});
  for (const auto& leg : call.under_way) endings_.push_back({leg, failure, {}});
}

// Called when a call's stand-in is over. A failed stand-in means that ranks' calls differ, or that
// the call failed at a peer. If the call has failed here, too, the stand-in's error explains more:
// it names the rank that has not begun the call. A leg's error may name a rank that itself only
// waits for the rank that has not begun.
void SiteRoute::on_stand_in_done(const std::shared_ptr<Call>& call) {
  const Status& status = call->stand_in->request.status;
  {
    const std::lock_guard lock(mutex_);
    call->stand_in_over = true;
    const bool failed = !call->hops.failure().ok();
    if (!status.ok() && failed) call->hops.explain(status);
    if (!status.ok() && !failed && !call->hops.done()) {
      call->hops.fail(status);
      end_rest(*call);
    }
  }
  advance();
}

// Returns the legs that may begin now. On each tier (one of the three communicators), legs begin in
// the order of their calls, but lossy and failed calls pass earlier calls. A lossy call's deadline
// comes whatever other calls do, and the caller of a failed call waits for its legs. The tier holds
// the places of the legs that were passed.
std::vector<SiteRoute::Starting> SiteRoute::take_startable(Instant now) {
  std::vector<Starting> starting;
  for (int t = 0; t < collective::kTiers; ++t) {
    const auto tier = static_cast<Tier>(t);
    std::vector<Starting> waiting;  // legs whose places have to be held for the next leg
    bool all_through = true;
    for (const std::shared_ptr<Call>& call : calls_) {
      const bool may_begin = all_through || call->hops.lossy() || !call->hops.failure().ok();
      while (auto* const leg = may_begin ? call->hops.next(tier, now) : nullptr) {
        for (const Starting& one : std::exchange(waiting, {})) {
          if (!std::exchange(one.leg->held, true)) starting.push_back(one);
        }
        starting.push_back({call, leg});
      }
      for (auto& leg : call->hops.not_begun(tier)) waiting.push_back({call, &leg, true});
      all_through &= call->hops.through(tier);
    }
  }
  return starting;
}

void SiteRoute::take_done(Instant now, std::vector<std::shared_ptr<Call>>& done) {
  std::erase_if(calls_, [&](const std::shared_ptr<Call>& call) {
    const bool failed = !call->hops.failure().ok();
    if (!call->hops.done() || (failed && !call->stand_in_over)) return false;
    call->hops.finish(call->work->request, now);
    done.push_back(call);
    return true;
  });
}

void SiteRoute::begin(const Starting& starting) {
  collective::HierarchicalCall::Leg& leg = *starting.leg;
  Channels& channels = *tiers_[static_cast<std::size_t>(leg.tier)];
  if (starting.holds) {
    (void)channels.hold_past_memory(leg.spec, leg.place);
    return;
  }
  auto work = channels.start_past_memory(leg.spec, leg.place);
  WorkState& state = *work;
  Status failure;
  {
    const std::lock_guard lock(mutex_);
    starting.call->under_way.push_back(work);
    failure = starting.call->hops.failure();
  }
  if (!failure.ok()) driving::Driver::end(work, failure);
  state.call_when_done(
      [weak = weak_from_this(), call = starting.call, leg = starting.leg, work = std::move(work)] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        {
          const std::lock_guard lock(self->mutex_);
          self->finished_.push_back({call, leg, work});
        }
        self->advance();
      });
}

void SiteRoute::add_counters(Channel::Counters& rows) {
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier)
    tiers_[tier]->datagrams().add_counters(kPrefixes[tier], rows);
}

void SiteRoute::abort(const char* how) {
  for (const auto& tier : tiers_) {
    if (tier != nullptr) tier->abort(how);
  }
}

// Returns the oldest of the current calls, or null if there are none.
std::shared_ptr<WorkState> SiteRoute::oldest() {
  const std::lock_guard lock(mutex_);
  return calls_.empty() ? nullptr : calls_.front()->work;
}

bool SiteRoute::is_advancing_elsewhere() {
  const std::lock_guard lock(mutex_);
  return advancing_ != std::thread::id() && advancing_ != std::this_thread::get_id();
}

void SiteRoute::close(std::vector<std::function<void()>>& /*closing*/) {
  if (generation_ != fork_generation()) {  // the lock may be the parent's
    for (auto& tier : tiers_) tier.reset();
    return;
  }
  const Instant until = driving::steady_now() + tiers_[0]->datagrams().closing_patience();
  while (const std::shared_ptr<WorkState> work = oldest()) {
    if (driving::in_callback() ||
        !driving::Driver::wait_for(*work, until - driving::steady_now())) {
      abort(driving::kDestroyed);
      break;
    }
  }
  // Current legs have been cancelled by now. From here on no thread begins another leg. This holds
  // for this thread, too, which may be inside begin(), in a callback that ends the communicator.
  closed_ = true;
  while (is_advancing_elsewhere()) std::this_thread::yield();
  std::vector<std::function<void()>> leaving;
  for (auto& tier : tiers_) leaving.emplace_back([&tier] { tier.reset(); });
  run_together("close a tier", leaving);
  std::deque<std::shared_ptr<Call>> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(calls_);
  }
  for (const std::shared_ptr<Call>& call : left) {
    const Status closed = Status::error(StatusCode::kCancelled, "rank %u: communicator closed",
                                        unsigned{sites_.self()});
    driving::Driver::end(call->stand_in, closed);
    call->work->request.finish(closed, driving::steady_now());
    driving::Driver::finish(*call->work);
  }
}

}  // namespace leeway::internal
