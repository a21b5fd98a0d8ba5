// Proofs, before the first call, that datagrams pass.
#include <algorithm>

#include "driving/channel.h"

namespace leeway::driving {
namespace {

// Paths are proven before multicast is. So a rank that was asked several times and has not reported
// our multicast after kMulticastProofTime will not report it.
constexpr Duration kMulticastProofTime = std::chrono::milliseconds(200);
constexpr Duration kMulticastProbeEvery = std::chrono::milliseconds(20);

// Most proofs of shared memory succeed, or are refused, within a few milliseconds.
constexpr Duration kMemoryProofTime = std::chrono::milliseconds(500);

}  // namespace

void Channel::probe_all() {
  Driver::Session session(*driver_);
  endpoint().probe_all();
  session.node().touch(*member_);
}

void Channel::ask_whether_given_up() {
  probe_all();
  const auto known = [this] { return state() != StatusCode::kOk; };
  Duration patience{0};
  {
    Driver::Session session(*driver_);
    patience = endpoint().state().slowest_timeout();
  }
  driver_->run_until(known, steady_now() + patience);
}

Status Channel::prove_paths(Duration timeout, const TellPath& tell) {
  proving_since_ = steady_now();
  Status status = pass_both_ways(timeout, tell);
  if (!status.ok()) abort();
  return status;
}

Status Channel::pass_both_ways(Duration timeout, const TellPath& tell) {
  const Instant deadline = steady_now() + timeout;
  Duration pause = std::chrono::milliseconds(2);
  const auto all_proven = [&] { return endpoint().peers_proven() == config().size - 1; };
  std::vector<bool> met(static_cast<std::size_t>(config().size));
  while (true) {
    probe_all();
    const Instant until = std::min(deadline, steady_now() + pause);
    while (driver_->run_until([&] { return all_proven() || any_came(met); }, until)) {
      Driver::Session session(*driver_);
      if (all_proven()) return Status();
      probe_who_came(met);
      session.node().touch(*member_);
    }
    if (state() == StatusCode::kCancelled) return status();
    if (steady_now() >= deadline) break;
    pause = std::min<Duration>(2 * pause, std::chrono::milliseconds(200));
  }
  std::vector<Rank> broken;
  Driver::Session session(*driver_);
  for (Rank peer = 0; peer < config().size; ++peer) {
    if (peer != config().self && !endpoint().link(peer).proven()) broken.push_back(peer);
  }
  return explain(broken, tell);
}

// Returns true if a peer that is not in `met` has been heard and its path is not proven yet. Such a
// peer may have opened its transport only now, so earlier probes may not have reached it.
bool Channel::any_came(const std::vector<bool>& met) {
  for (Rank peer = 0; peer < config().size; ++peer) {
    if (!met[peer] && endpoint().link(peer).heard && !endpoint().link(peer).proven()) return true;
  }
  return false;
}

void Channel::probe_who_came(std::vector<bool>& met) {
  for (Rank peer = 0; peer < config().size; ++peer) {
    if (met[peer] || !endpoint().link(peer).heard) continue;
    met[peer] = true;
    if (!endpoint().link(peer).proven()) endpoint().probe(peer);
  }
}

// Collects the facts of a path. The caller must have a Session.
PathFacts Channel::facts_of(Rank peer) {
  const protocol::Link& link = endpoint().link(peer);
  PathFacts facts{.self = config().self,
                  .peer = peer,
                  .kind = kind(),
                  .sealed = driver_->layers_.sealed != nullptr,
                  .heard = link.heard,
                  .gone = link.gone,
                  .sent = link.path().last_sequence(),
                  .arrived = link.path().reported().received,
                  .came = link.path().received()};
  if (driver_->layers_.where == nullptr) return facts;
  facts.own = driver_->layers_.where->address_of(slots_[config().self]);
  facts.theirs = driver_->layers_.where->address_of(slots_[peer]);
  facts.refused = driver_->layers_.where->refusals_to(slots_[peer]);
  // If the last stranger's address is a rank's, that sender is no stranger: its datagrams came
  // before this process knew the address.
  const NetworkAddress stranger = driver_->layers_.where->last_stranger();
  const bool is_rank = std::any_of(slots_.begin(), slots_.end(), [&](Rank slot) {
    return driver_->layers_.where->address_of(slot) == stranger;
  });
  if (is_rank) return facts;
  facts.stranger = stranger;
  facts.from_strangers = driver_->transport_->counters().from_strangers;
  return facts;
}

// Returns the error for broken paths. Its text has room for the facts of the first path only. So if
// several paths are broken, `tell` gets the facts of each.
Status Channel::explain(const std::vector<Rank>& broken, const TellPath& tell) {
  std::string others;
  for (const Rank peer : broken) {
    if (peer != broken.front()) others += (others.empty() ? "" : ", ") + std::to_string(peer);
    if (broken.size() > 1 && tell) tell(peer, text_of(facts_of(peer)));
  }
  return Status::error(
      StatusCode::kUnavailable, "rank %u: the path over %s to rank %u%s%s failed after %.1f s: %s",
      config().self, std::string(to_string(kind())).c_str(), broken.front(),
      others.empty() ? "" : ", and to ", others.c_str(), to_seconds(steady_now() - proving_since_),
      text_of(facts_of(broken.front())).c_str());
}

// Notes for each link whether it keeps bytes intact, and derives kind_ from the number of links
// that lead through memory.
void Channel::look_at_links(Driver::Session& session) {
  config_.intact.assign(config_.size, 0);
  int near = 0;
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer == config_.self) continue;
    config_.intact[peer] = session.limits_to(slots_[peer]).intact;
    near += session.mixed() != nullptr && session.mixed()->is_near(slots_[peer]);
  }
  if (near > 0) kind_ = near == config_.size - 1 ? TransportKind::shm : TransportKind::mixed;
}

void Channel::prove_memory() {
  if (driver_->layers_.mixed == nullptr) return;
  const auto settled = [this] { return driver_->layers_.mixed->settled(); };
  (void)driver_->run_until(settled, steady_now() + kMemoryProofTime);
  Driver::Session session(*driver_);
  look_at_links(session);
  endpoint().keep_intact(config_.intact);
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer != config_.self && driver_->layers_.mixed->is_near(slots_[peer]))
      session.node().sizes().lift(slots_[peer]);
  }
}

std::string Channel::memory_obstacles(bool of_this_host) {
  std::string all;
  Driver::Session session(*driver_);
  for (Rank peer = 0; peer < config_.size && session.mixed() != nullptr; ++peer) {
    if (peer == config_.self || session.mixed()->is_near(slots_[peer])) continue;
    if (of_this_host && !session.mixed()->may_be_near(slots_[peer])) continue;
    const std::string& why = session.mixed()->obstacle(slots_[peer]);
    all += (all.empty() ? "rank " : "; rank ") + std::to_string(peer) + ": " + why;
  }
  return all;
}

Status Channel::agree_on_size(bool measured, Duration timeout, const TellPath& tell) {
  Status status = settle_size(measured, timeout, tell);
  if (!status.ok()) abort();
  return status;
}

// Returns the peers that hold up the agreement: they have not told their length, or this rank has
// not measured the path to them.
std::vector<Rank> Channel::unmeasured() {
  std::vector<Rank> ranks = member_->sizes().untold();
  for (Rank peer = 0; peer < config().size; ++peer) {
    if (peer == config().self || endpoint().link(peer).path().size.settled()) continue;
    if (std::find(ranks.begin(), ranks.end(), peer) == ranks.end()) ranks.push_back(peer);
  }
  return ranks;
}

Status Channel::settle_size(bool measured, Duration timeout, const TellPath& tell) {
  const Instant deadline = steady_now() + timeout;
  Duration pause = std::chrono::milliseconds(1);
  const auto agreed = [this] { return member_->sizes().agreed_bytes().has_value(); };
  while (true) {
    {
      Driver::Session session(*driver_);
      // A path is measured as soon as a report has come over it, and a probe asks for a report.
      // Memory carries all sizes that this rank means to send, so it is not measured.
      const bool searched =
          measured && driver_->layers_.lengths != nullptr && kind_ != TransportKind::shm;
      if (!session.node().sizes().agree(*member_, searched)) endpoint().probe_all();
      // A peer that gave up does not answer any more.
      for (const Rank peer : unmeasured()) {
        if (endpoint().link(peer).gone) return explain({peer}, tell);
      }
      const Rank narrow = searched ? session.node().sizes().too_narrow(*member_) : kNoRank;
      if (narrow != kNoRank) {
        return Status::error(StatusCode::kUnavailable,
                             "rank %u: no datagram of 548 bytes reaches rank %u, and shorter ones "
                             "do: the path's MTU must be 576 or more",
                             config().self, unsigned{narrow});
      }
      session.node().touch(*member_);
    }
    const Instant until = std::min(deadline, steady_now() + pause);
    if (driver_->run_until(agreed, until)) break;
    if (state() == StatusCode::kCancelled) return status();
    if (steady_now() >= deadline) {
      Driver::Session session(*driver_);
      return explain(unmeasured(), tell);
    }
    pause = std::min<Duration>(2 * pause, std::chrono::milliseconds(200));
  }
  Driver::Session session(*driver_);
  config_.datagram_bytes = *member_->sizes().agreed_bytes();
  endpoint().shorten_datagrams(config_.datagram_bytes);
  return Status();
}

std::vector<Rank> Channel::deaf_to_multicast() {
  std::vector<Rank> deaf;
  const auto all_hear = [&] {
    deaf.clear();
    for (Rank peer = 0; peer < config().size; ++peer) {
      if (peer != config().self && !endpoint().link(peer).group.hears()) deaf.push_back(peer);
    }
    return deaf.empty();
  };
  const Instant deadline = steady_now() + kMulticastProofTime;
  do {
    probe_all();
  } while (!driver_->run_until(all_hear, steady_now() + kMulticastProbeEvery) &&
           steady_now() < deadline);
  return deaf;
}

}  // namespace leeway::driving
