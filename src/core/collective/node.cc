#include "collective/node.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"

namespace leeway::collective {

Member& Node::join(Instant now, const protocol::EndpointConfig& config, std::vector<Rank> slots,
                   MemoryWatcher* watcher) {
  LEEWAY_ASSERT(static_cast<int>(slots.size()) == config.size && !has(config.epoch));
  std::vector<protocol::Path*> paths;
  paths.reserve(slots.size());
  for (const Rank slot : slots) paths.push_back(&paths_.meet(slot, config.datagram_bytes));
  protocol::EndpointConfig own = config;
  own.paced = pacing_.uplink() != nullptr;
  members_.push_back(std::make_unique<Member>(own, std::move(slots), paths, watcher));
  Member& member = *members_.back();
  for (const Rank slot : member.slots_) pacing_.add_path(slot);
  touched_.reserve(members_.size());
  rotation_.make_room(members_.size());
  lobby_.take(config.epoch, [&](Rank slot, ByteSpan datagram) {
    const Rank from = member.rank_in(slot);
    if (from != kNoRank) member.engine_.on_datagram(now, from, datagram);
  });
  touch(member);
  return member;
}

std::unique_ptr<Member> Node::part(Member& member) {
  const auto at = std::find_if(members_.begin(), members_.end(),
                               [&](const auto& other) { return other.get() == &member; });
  LEEWAY_ASSERT(at != members_.end() && held_back_ >= member.held_back_);
  former_.add(
      {member.config().epoch, member.config().self, std::move(member.slots_), member.sizes_.own()});
  std::erase(touched_, &member);
  rotation_.remove(member);
  if (latest_ == &member) latest_ = nullptr;
  sizes_.forget(member);
  held_back_ -= member.held_back_;
  std::unique_ptr<Member> former = std::move(*at);
  members_.erase(at);
  return former;
}

Member* Node::find(std::uint32_t epoch) const {
  if (latest_ != nullptr && latest_->config().epoch == epoch) return latest_;
  for (const auto& member : members_) {
    if (member->config().epoch == epoch) return latest_ = member.get();
  }
  return nullptr;
}

void Node::touch(Member& member) {
  if (!std::exchange(member.touched_, true)) touched_.push_back(&member);
}

void Node::on_datagram(Instant now, Rank slot, ByteSpan datagram, Ecn ecn) {
  if (wire::is_for_process(datagram)) [[unlikely]]
    return on_process_datagram(now, slot, datagram, ecn);
  const auto epoch = wire::epoch_of(datagram);
  if (!epoch) return refuse(wire::Refusal::truncated);
  Member* const member = find(*epoch);
  if (member == nullptr) return on_stranger(now, slot, *epoch, datagram);
  const Rank from = member->rank_in(slot);
  if (from == kNoRank) return refuse(wire::Refusal::misrouted);
  protocol::Path& path = paths_[slot];
  const std::uint32_t received = path.received();
  if (pacing_.uplink() == nullptr) {
    member->engine_.on_datagram(now, from, datagram);
  } else {
    const std::uint32_t reported = path.reported().largest_sequence;
    member->engine_.on_datagram(now, from, datagram);
    if (path.reported().largest_sequence != reported) pacing_.on_report(now, slot);
  }
  // If the member refused the datagram, the path did not count it as received. Its ECN mark is not
  // counted either.
  if (ecn != Ecn::none && path.received() != received) path.note_mark(ecn);
  sizes_.look(slot);
  touch(*member);
  if (path.take_unblocked()) spread_credit(slot);
}

// Takes in a datagram that concerns two processes and not a communicator (WIRE 10).
void Node::on_process_datagram(Instant now, Rank slot, ByteSpan datagram, Ecn ecn) {
  wire::Prefix prefix;
  wire::Refusal refusal = wire::decode_prefix(datagram, nullptr, prefix);
  if (refusal == wire::Refusal::none && !paths_.has(slot)) refusal = wire::Refusal::epoch;
  if (refusal != wire::Refusal::none) return refuse(refusal);
  if (paths_[slot].dead()) return;
  ByteSpan whole;
  refusal = prefix.type == wire::PacketType::piece
                ? sizes_.on_piece(slot, prefix, datagram, whole)
                : sizes_.on_size(now, slot, prefix, datagram, find(prefix.epoch),
                                 former_.find(prefix.epoch));
  if (refusal != wire::Refusal::none) return refuse(refusal);
  if (!whole.empty()) on_datagram(now, slot, whole, ecn);
}

bool Node::busy() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const auto& member) { return !member->engine_.idle(); });
}

void Node::note_forwarded(Instant now, std::uint64_t bytes) {
  pacing_.charge(now, bytes);
  for (const auto& member : members_) member->engine().endpoint().on_forwarded(now);
}

void Node::on_new_path(Instant now, Rank slot, Rank relay, std::size_t further) {
  paths_.meet(slot).begin_anew();
  if (relayed_.lead(slot, relay, further)) spread_credit(slot);
  sizes_.on_new_path(now, slot, further);
  if (pacing_.uplink() != nullptr) pacing_.uplink()->begin_anew(now, slot);
}

// Lets all members that have data for the process in the slot send again.
void Node::spread_credit(Rank slot) {
  for (const auto& member : members_) {
    const Rank rank = member->rank_in(slot);
    if (rank == kNoRank) continue;
    member->engine_.endpoint().on_credit(rank);
    rotation_.add(*member);
  }
}

void Node::on_stranger(Instant now, Rank slot, std::uint32_t epoch, ByteSpan datagram) {
  wire::Prefix prefix;
  const wire::Refusal refusal = wire::decode_prefix(datagram, nullptr, prefix);
  refuse(refusal == wire::Refusal::none ? wire::Refusal::epoch : refusal);
  if (refusal != wire::Refusal::none) return;
  if (const FormerMember* const former = former_.find(epoch); former != nullptr) {
    auto answer = former->answer_to(slot, datagram);
    if (!answer) return;
    if (answer->type == wire::PacketType::goodbye && paths_.has(slot) && paths_[slot].dead())
      answer->type = wire::PacketType::given_up;  // WIRE 6.7
    paths_.meet(slot).on_arrival(now, prefix.sequence, datagram.size());
    return answers_.add(slot, *answer);
  }
  if (prefix.type == wire::PacketType::alive) return;
  if (prefix.type == wire::PacketType::probe) answer_probe(prefix, slot);
  lobby_.put(prefix, slot, datagram);
}

// Answers a probe for a communicator that this process has not joined yet. The answer says that
// this process is alive (WIRE 6.9). Only the prober can check that this process has the rank that
// the probe names.
void Node::answer_probe(const wire::Prefix& probe, Rank slot) {
  if (!paths_.has(slot) || probe.destination == kEveryRank) return;
  const auto type =
      paths_[slot].dead() ? wire::PacketType::given_up : wire::PacketType::alive;  // WIRE 6.7
  answers_.add(slot, {type, probe.epoch, probe.destination, probe.source, probe.sequence});
}

void Node::on_wake(Instant now, std::uint64_t released) {
  while (!touched_.empty()) {
    Member& member = *touched_.back();
    touched_.pop_back();
    wake(now, member, released);
  }
  if (pacing_.uplink() != nullptr) pacing_.uplink()->on_wake(now);
  relayed_.on_wake(now, [this](Rank slot) { spread_credit(slot); });
  sizes_.on_wake(now);
  if (now < soonest_ && held_back_ == 0) return;
  soonest_ = Instant::infinite_future();
  for (const auto& member : members_) {
    const Instant at = member->engine_.wake_at();
    if (member->held_back_ || at <= now) {
      wake(now, *member, released);
    } else {
      soonest_ = std::min(soonest_, at);
    }
  }
}

void Node::wake(Instant now, Member& member, std::uint64_t released) {
  member.touched_ = false;
  const bool may_start = member.trains_end_ <= released;
  member.engine_.on_wake(now, may_start);
  held_back_ -= member.held_back_;
  member.held_back_ = !may_start && member.engine_.waits();
  held_back_ += member.held_back_;
  spread_deaths(now, member);
  soonest_ = std::min(soonest_, member.engine_.wake_at());
  rotation_.add(member);
}

// If `finder` has found a process to be dead, all other members take it for dead, too.
void Node::spread_deaths(Instant now, Member& finder) {
  const auto deaths = [](const Member& member) {
    return member.engine_.endpoint().counters().peers_given_up;
  };
  if (deaths(finder) == finder.deaths_seen_) return;
  for (Rank slot = 0; slot < paths_.slots(); ++slot) {
    if (!paths_.has(slot) || !paths_[slot].dead()) continue;
    for (const auto& member : members_) {
      const Rank rank = member->rank_in(slot);
      if (rank == kNoRank) continue;
      member->engine_.endpoint().bury(now, rank);
      member->deaths_seen_ = deaths(*member);
      touch(*member);
    }
  }
}

bool Node::poll_train(Instant now, protocol::TrainBuffer& out) {
  if (sizes_.waits() && sizes_.poll(now, members_, out)) {
    pacing_.charge(now, out.total_bytes());
    ++trains_;
    return true;
  }
  if (!answers_.empty()) {
    const bool numbered = answers_.write(now, paths_, out);
    ++trains_;
    if (!numbered) return true;
    if (pacing_.uplink() != nullptr) pacing_.on_train(now, out);
  } else if (!(pacing_.uplink() == nullptr ? poll_members(now, out) : poll_paced(now, out))) {
    return false;
  }
  if (!paths_.measured() || out.to() == kEveryRank) return true;
  const std::size_t further = sizes_.fit(out);
  if (further != 0) pacing_.charge(now, further);
  return true;
}

bool Node::poll_members(Instant now, protocol::TrainBuffer& out) {
  while (Member* const member = rotation_.next()) {
    if (hand_out(now, *member, out)) return true;
  }
  return false;
}

// Control datagrams go at once, and are charged to the uplink. Data go only while the uplink is
// open.
bool Node::poll_paced(Instant now, protocol::TrainBuffer& out) {
  congestion::Uplink& uplink = *pacing_.uplink();
  out.limit(uplink.quantum_bytes());
  const bool open = uplink.open(now);
  while (Member* const member = open ? rotation_.next() : nullptr) {
    if (!hand_out(now, *member, out)) continue;
    pacing_.on_train(now, out, member->engine_.endpoint().sender().ready_share());
    return true;
  }
  for (Member* const member : rotation_.waiting()) {
    if (!member->engine_.poll_train(now, out, Engine::Poll::control)) continue;
    soonest_ = std::min(soonest_, member->engine_.wake_at());
    address(now, *member, out);
    pacing_.on_train(now, out);
    return true;
  }
  rotation_.empty() ? uplink.note_idle() : uplink.note_held_back();
  return false;
}

// Lets a member that was just taken from the rotation write a train.
bool Node::hand_out(Instant now, Member& member, protocol::TrainBuffer& out) {
  const bool filled = member.engine_.poll_train(now, out);
  soonest_ = std::min(soonest_, member.engine_.wake_at());
  if (!filled) return false;
  rotation_.add(member);  // behind the others
  address(now, member, out);
  return true;
}

// Changes the train's address from the member's rank to the slot, and counts the train.
void Node::address(Instant now, Member& member, protocol::TrainBuffer& out) {
  if (out.to() != kEveryRank) {
    const Rank slot = member.slots_[out.to()];
    out.readdress(slot);
    paths_[slot].note_sent(out.total_bytes());
    relayed_.on_train(now, slot, out.total_bytes(), out.datagrams());
  }
  member.trains_end_ = ++trains_;
}

Instant Node::next_wake() const {
  if (!touched_.empty()) return Instant{0};
  soonest_ = Instant::infinite_future();
  for (const auto& member : members_) soonest_ = std::min(soonest_, member->engine_.wake_at());
  const Instant at = std::min({soonest_, sizes_.wake_at(), relayed_.wake_at()});
  return pacing_.uplink() == nullptr ? at : std::min(at, pacing_.uplink()->next_wake());
}

void Node::cancel_all(Instant now, const Status& status) {
  for (const auto& member : members_) {
    member->engine_.cancel(now, status);
    touch(*member);
  }
}

}  // namespace leeway::collective
