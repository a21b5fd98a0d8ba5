#include "communicator/hierarchy.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/philox.h"
#include "driving/fork.h"
#include "transport/shm/host.h"

namespace leeway::internal {
namespace {

using collective::OperationSpec;
using collective::Tier;

// Stream tag of the keyed hash (base/philox.h).
constexpr std::uint32_t kSiteStream = 0x53000000;

// The name that stands for the host on which a process runs.
constexpr std::string_view kHostAsSite = "host";

// Tensors from here on go in hops. Between sites a byte is dear, on a network of one's own the
// further hops are.
constexpr std::size_t kLeastBytesPaced = std::size_t{16} << 10;
constexpr std::size_t kLeastBytes = std::size_t{256} << 10;

// A piece of a tensor that is under way in one hop while the one before it is in the next. Across a
// paced line the other hops are short, and each call there has a round trip of its own.
constexpr std::size_t kPieceBytesPaced = std::size_t{64} << 20;
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

// By tier: of the communicators, and of their counters.
constexpr std::array kNames = {"/reduce", "/across", "/spread"};
constexpr std::array kPrefixes = {"reduce_", "across_", "spread_"};

bool is_paced(const Options& options) {
  return options.congestion != CongestionControl::none;
}

// FNV-1a; never 0.
std::uint64_t digest_of(std::span<const std::byte> bytes) {
  std::uint64_t digest = 0xCBF29CE484222325;
  for (const std::byte byte : bytes)
    digest = (digest ^ static_cast<std::uint64_t>(byte)) * 0x100000001B3;
  return std::max<std::uint64_t>(digest, 1);
}

std::size_t bytes_of(const OperationSpec& spec) {
  return std::max(spec.input.bytes(), spec.output.bytes());
}

}  // namespace

Result<std::uint64_t> site_of(const Options& options) {
  if (options.site.empty()) return std::uint64_t{0};
  if (options.site != kHostAsSite) return digest_of(std::as_bytes(std::span(options.site)));
  const auto host = transport::this_host();
  if (!host.ok()) return host.status();
  return digest_of(host->boot);
}

Hierarchy::Hierarchy(const collective::SiteMap& sites, Channels& parent, const Options& options)
    : sites_(sites),
      parent_(parent),
      generation_(driving::fork_generation()),
      least_bytes_(is_paced(options) ? kLeastBytesPaced : kLeastBytes),
      piece_bytes_(is_paced(options) ? kPieceBytesPaced : kPieceBytes) {
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

bool Hierarchy::takes(const OperationSpec& spec) const {
  return collective::HierarchicalCall::takes(spec) && bytes_of(spec) >= least_bytes_;
}

std::shared_ptr<WorkState> Hierarchy::start(const OperationSpec& spec) {
  Status status = generation_ == driving::fork_generation()
                      ? collective::validate(spec, sites_.self(), sites_.size())
                      : driving::forked();
  if (status.ok()) status = collective::HierarchicalCall::check(spec);
  if (!status.ok()) {
    auto refused = std::make_shared<WorkState>(spec);
    refused->request.status = status;
    refused->request.done = refused->done = true;
    return refused;
  }
  const Instant now = driving::steady_now();
  const auto call = std::make_shared<Call>(spec, sites_, now, piece_bytes_);
  call->work->driver = parent_.datagrams().driver();
  call->work->request.submitted = now;
  {
    const std::lock_guard lock(mutex_);
    call->work->request.report.sequence = next_sequence_++;
    calls_.push_back(call);
  }
  advance();
  return call->work;
}

// One thread at a time looks what has come of legs and begins those that may begin, without the
// lock: a leg that begins may be over before start() returns, and calls back.
void Hierarchy::advance() {
  std::unique_lock lock(mutex_);
  if (std::exchange(advancing_, true)) return;
  for (;;) {
    const Instant now = driving::steady_now();
    for (const Finished& one : std::exchange(finished_, {}))
      one.call->hops.on_done(*one.leg, one.work->request, now);
    const std::vector<Starting> starting = take_startable(now);
    const std::vector<std::shared_ptr<Call>> done = take_done(now);
    if (starting.empty() && done.empty() && finished_.empty()) break;
    lock.unlock();
    for (const Starting& one : starting) begin(one);
    for (const auto& call : done) driving::Driver::finish(*call->work);
    lock.lock();
  }
  advancing_ = false;
}

// On each tier calls follow one another, and so do the legs of a call.
std::vector<Hierarchy::Starting> Hierarchy::take_startable(Instant now) {
  std::vector<Starting> starting;
  for (int t = 0; t < collective::kTiers; ++t) {
    const auto tier = static_cast<Tier>(t);
    for (const std::shared_ptr<Call>& call : calls_) {
      while (auto* const leg = call->hops.next(tier, now)) starting.push_back({call, leg});
      if (!call->hops.through(tier)) break;
    }
  }
  return starting;
}

std::vector<std::shared_ptr<Hierarchy::Call>> Hierarchy::take_done(Instant now) {
  std::vector<std::shared_ptr<Call>> done;
  for (const std::shared_ptr<Call>& call : calls_) {
    if (call->hops.done()) done.push_back(call);
  }
  std::erase_if(calls_, [](const std::shared_ptr<Call>& call) { return call->hops.done(); });
  for (const std::shared_ptr<Call>& call : done) call->hops.finish(call->work->request, now);
  return done;
}

void Hierarchy::begin(const Starting& starting) {
  Channels& channels = *tiers_[static_cast<std::size_t>(starting.leg->tier)];
  auto work = channels.start(starting.leg->spec);
  WorkState& state = *work;
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

void Hierarchy::add_counters(Channel::Counters& rows) {
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier)
    tiers_[tier]->datagrams().add_counters(kPrefixes[tier], rows);
}

void Hierarchy::abort() {
  for (const auto& tier : tiers_) {
    if (tier != nullptr) tier->abort();
  }
}

void Hierarchy::close() {
  if (generation_ != driving::fork_generation()) {  // the lock may be the parent's
    for (auto& tier : tiers_) tier.reset();
    return;
  }
  if (driving::in_callback()) abort();
  const Duration patience = tiers_[0]->datagrams().closing_patience();
  const Instant until = driving::steady_now() + patience;
  for (;;) {
    std::shared_ptr<Call> first;
    {
      const std::lock_guard lock(mutex_);
      if (!calls_.empty()) first = calls_.front();
    }
    if (first == nullptr || driving::in_callback()) break;
    if (!driving::Driver::wait_for(*first->work, until - driving::steady_now())) {
      abort();
      break;
    }
  }
  std::vector<std::thread> closing;
  for (auto& tier : tiers_) closing.emplace_back([&tier] { tier.reset(); });
  for (std::thread& thread : closing) thread.join();
}

}  // namespace leeway::internal
