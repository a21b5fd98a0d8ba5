#include "collective/node.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"

namespace leeway::collective {
namespace {

// Recently left communicators that are remembered. A peer that speaks to an older one waits for its
// deadline.
constexpr std::size_t kClosedMax = 256;

// Answers that may wait to peers that speak to communicators that are closed or not joined yet. A
// question that finds no room is asked again.
constexpr std::size_t kAnswersMax = 64;

// Interval at which the system is asked for its count of drops, which takes a microsecond.
constexpr Duration kHostDropsEvery = std::chrono::milliseconds(10);

std::vector<Rank> by_slot(std::span<const Rank> slots, Rank self) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < slots.size(); ++rank) {
    if (rank == self) continue;
    if (slots[rank] >= ranks.size()) ranks.resize(slots[rank] + std::size_t{1}, kNoRank);
    ranks[slots[rank]] = rank;
  }
  return ranks;
}

}  // namespace

Member::Member(const protocol::EndpointConfig& config, std::vector<Rank> slots,
               std::span<protocol::Path* const> paths, MemoryWatcher* watcher)
    : engine_(config, paths, watcher),
      slots_(std::move(slots)),
      ranks_(by_slot(slots_, config.self)),
      sizes_(slots_.size()),
      knows_size_(slots_.size()) {}

Node::Node(const congestion::Settings& congestion) {
  answers_.reserve(kAnswersMax);
  pace(Instant{0}, congestion);
}

bool Node::pace(Instant now, const congestion::Settings& congestion) {
  if (uplink_ != nullptr) return false;
  auto controller = congestion::make_controller(congestion);
  if (controller == nullptr) return false;
  begin_pacing(now, std::make_unique<congestion::Uplink>(std::move(controller)));
  return true;
}

bool Node::pace_with(Instant now, Node& first) {
  if (uplink_ != nullptr || first.uplink_ == nullptr) return false;
  begin_pacing(now, std::make_unique<congestion::Uplink>(first.uplink_.get()));
  return true;
}

void Node::wake_by(std::function<void()> wake) {
  wake_ = std::move(wake);
  if (uplink_ != nullptr) uplink_->wake_by(wake_);
}

void Node::begin_pacing(Instant now, std::unique_ptr<congestion::Uplink> uplink) {
  uplink_ = std::move(uplink);
  uplink_->wake_by(wake_);
  room_at_ = now;
  for (Rank slot = 0; slot < paths_.size(); ++slot) {
    if (paths_[slot] == nullptr || paths_[slot]->window() == 0) continue;
    begin_link(slot);
    note_report(now, slot);  // earlier reports tell nothing of later datagrams
  }
}

void Node::begin_link(Rank slot) {
  uplink_->make_link(slot, paths_[slot]->remembered());
  paths_[slot]->ask();
}

Member& Node::join(Instant now, const protocol::EndpointConfig& config, std::vector<Rank> slots,
                   MemoryWatcher* watcher) {
  LEEWAY_ASSERT(static_cast<int>(slots.size()) == config.size && !has(config.epoch));
  std::vector<protocol::Path*> paths;
  paths.reserve(slots.size());
  for (const Rank slot : slots) paths.push_back(&path_of(slot, config.datagram_bytes));
  protocol::EndpointConfig own = config;
  own.paced = uplink_ != nullptr;
  members_.push_back(std::make_unique<Member>(own, std::move(slots), paths, watcher));
  if (uplink_ != nullptr) {
    for (const Rank slot : members_.back()->slots_) {
      if (paths_[slot]->window() == 0) continue;  // this process itself
      begin_link(slot);
    }
  }
  touched_.reserve(members_.size());
  sending_.reserve(2 * members_.size());
  Member& member = *members_.back();
  lobby_.take(config.epoch, [&](Rank slot, ByteSpan datagram) {
    const Rank from = member.rank_in(slot);
    if (from != kNoRank) member.engine_.on_datagram(now, from, datagram);
  });
  touch(member);
  return member;
}

std::unique_ptr<Member> Node::part(Member& member) {
  Closed closed{member.config().epoch, member.config().self, std::move(member.slots_),
                member.sizes_[member.config().self]};
  if (closed_.size() < kClosedMax) {
    closed_.push_back(std::move(closed));
  } else {
    closed_[next_closed_++ % kClosedMax] = std::move(closed);
  }
  std::erase(touched_, &member);
  sending_.erase(sending_.begin(), sending_.begin() + static_cast<std::ptrdiff_t>(sending_at_));
  sending_at_ = 0;
  std::erase(sending_, &member);
  if (latest_ == &member) latest_ = nullptr;
  if (asks_size_ == &member) asks_size_ = nullptr;
  held_back_ -= member.held_back_;
  const auto at = std::find_if(members_.begin(), members_.end(),
                               [&](const auto& other) { return other.get() == &member; });
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

protocol::Path& Node::path_of(Rank slot, std::size_t bytes_max) {
  if (slot >= paths_.size()) paths_.resize(slot + std::size_t{1});
  if (paths_[slot] == nullptr) {
    paths_[slot] = std::make_unique<protocol::Path>();
    protocol::SizeLimits limits = sizes_;
    limits.most = std::min(limits.most, bytes_max);
    paths_[slot]->size.configure(limits);
  }
  return *paths_[slot];
}

void Node::touch(Member& member) {
  if (!std::exchange(member.touched_, true)) touched_.push_back(&member);
}

void Node::queue(Member& member) {
  if (std::exchange(member.sends_, true)) return;
  if (sending_.size() ==
      sending_.capacity()) {  // the places in front of sending_at_ are enough for all members
    sending_.erase(sending_.begin(), sending_.begin() + static_cast<std::ptrdiff_t>(sending_at_));
    sending_at_ = 0;
  }
  sending_.push_back(&member);
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
  const std::uint32_t received = paths_[slot]->received();
  if (uplink_ == nullptr) {
    member->engine_.on_datagram(now, from, datagram);
  } else {
    const std::uint32_t reported = paths_[slot]->reported().largest_sequence;
    member->engine_.on_datagram(now, from, datagram);
    if (paths_[slot]->reported().largest_sequence != reported) note_report(now, slot);
  }
  // The ECN mark of a refused datagram does not count, either.
  if (ecn != Ecn::none && paths_[slot]->received() != received) paths_[slot]->note_mark(ecn);
  look_at_size_by(paths_[slot]->size.wake_at());
  touch(*member);
  if (paths_[slot]->take_unblocked()) spread_credit(slot);
}

bool Node::busy() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const auto& member) { return !member->engine_.idle(); });
}

void Node::note_forwarded(Instant now, std::uint64_t bytes) {
  if (uplink_ != nullptr) uplink_->on_group_sent(now, bytes);
  for (const auto& member : members_) member->engine().endpoint().on_forwarded(now);
}

void Node::on_new_path(Instant now, Rank slot, Rank relay, std::size_t further) {
  path_of(slot).begin_anew();
  if (slot >= relayed_.size()) relayed_.resize(slot + std::size_t{1});
  relayed_[slot] = {relay, further};
  if (paths_[slot]->held()) {
    paths_[slot]->hold(false);
    spread_credit(slot);
  }
  paths_[slot]->size.begin_anew(now, further);
  look_at_size_by(paths_[slot]->size.wake_at());
  if (uplink_ != nullptr) uplink_->begin_anew(now, slot);
}

void Node::on_relay_share(Instant now, Rank relay, std::uint64_t bytes_per_second) {
  if (relay >= relays_.size()) relays_.resize(relay + std::size_t{1});
  relays_[relay].limit(now, bytes_per_second);
}

// Charges a train that goes through a limiting relay to that relay's pace.
void Node::note_relayed(Instant now, const protocol::TrainBuffer& out) {
  const Rank slot = out.to();
  if (slot >= relayed_.size() || relayed_[slot].relay >= relays_.size()) return;
  const std::size_t around = relayed_[slot].further + sizes_.around;
  congestion::RelayPace& pace = relays_[relayed_[slot].relay];
  pace.on_sent(now, out.total_bytes() + out.datagrams() * around);
  if (pace.opens_at() > now) hold_relayed(now, relayed_[slot].relay);
}

// Holds all paths through the relay, since it has one share for all of them.
void Node::hold_relayed(Instant now, Rank relay) {
  const Instant opens_at = relays_[relay].opens_at();
  for (Rank slot = 0; slot < relayed_.size(); ++slot) {
    if (relayed_[slot].relay == relay) paths_[slot]->hold(opens_at > now);
  }
  relays_at_ = std::min(relays_at_, opens_at);
}

void Node::wake_relayed(Instant now) {
  relays_at_ = Instant::infinite_future();
  for (Rank slot = 0; slot < relayed_.size(); ++slot) {
    if (paths_[slot] == nullptr || !paths_[slot]->held()) continue;
    const Instant opens_at = relays_[relayed_[slot].relay].opens_at();
    if (opens_at > now) {
      relays_at_ = std::min(relays_at_, opens_at);
      continue;
    }
    paths_[slot]->hold(false);
    spread_credit(slot);
  }
}

void Node::note_report(Instant now, Rank slot) {
  protocol::Path& path = *paths_[slot];
  const protocol::PathReport& report = path.reported();
  uplink_->on_report(now, slot,
                     {.largest = report.largest_sequence,
                      .received = report.received,
                      .received_bytes = report.received_bytes,
                      .arrived_us = report.arrived_us,
                      .ect = report.ect,
                      .ce = report.ce,
                      .grant = report.grant,
                      .host_drops = report.host_drops,
                      .held_back = report.delay});
  path.limit(uplink_->datagrams_granted(slot));
  if (uplink_->asks(now, slot)) path.ask();
}

void Node::on_host_drops(Instant now, std::uint64_t drops, std::size_t socket_bytes) {
  room_at_ = now + kHostDropsEvery;
  arrived_.resize(paths_.size());
  for (std::size_t slot = 0; slot < paths_.size(); ++slot) {
    if (paths_[slot] == nullptr) continue;
    const protocol::Path& path = *paths_[slot];
    arrived_[slot] = {.missing = path.largest_seen() - path.received(),
                      .bytes = path.received_bytes(),
                      .rtt = path.rtt.smoothed()};
  }
  receive_room_.look(now, drops, socket_bytes, arrived_);
  for (std::size_t slot = 0; slot < paths_.size(); ++slot) {
    if (paths_[slot] != nullptr)
      paths_[slot]->tell_host(receive_room_.grant(slot), receive_room_.drops(slot));
  }
}

// Lets all members with data for this process go on.
void Node::spread_credit(Rank slot) {
  for (const auto& member : members_) {
    const Rank rank = member->rank_in(slot);
    if (rank == kNoRank) continue;
    member->engine_.endpoint().on_credit(rank);
    queue(*member);
  }
}

void Node::on_stranger(Instant now, Rank slot, std::uint32_t epoch, ByteSpan datagram) {
  wire::Prefix prefix;
  const wire::Refusal refusal = wire::decode_prefix(datagram, nullptr, prefix);
  refuse(refusal == wire::Refusal::none ? wire::Refusal::epoch : refusal);
  if (refusal != wire::Refusal::none) return;
  const auto closed = std::find_if(closed_.begin(), closed_.end(),
                                   [&](const Closed& one) { return one.epoch == epoch; });
  if (closed != closed_.end()) return answer(now, *closed, slot, datagram);
  if (prefix.type == wire::PacketType::alive) return;
  if (prefix.type == wire::PacketType::probe) answer_probe(prefix, slot);
  lobby_.put(prefix, slot, datagram);
}

// WIRE 6.9: this process lives, and has not joined the communicator yet. It does not know whether
// its rank is the one that the probe names. The prober refuses the answer of another rank.
void Node::answer_probe(const wire::Prefix& probe, Rank slot) {
  const bool met = slot < paths_.size() && paths_[slot] != nullptr;
  if (!met || probe.destination == kEveryRank || answers_.size() == kAnswersMax) return;
  const auto type =
      paths_[slot]->dead() ? wire::PacketType::given_up : wire::PacketType::alive;  // WIRE 6.7
  answers_.push_back(
      {{type, probe.epoch, probe.destination, probe.source, probe.sequence}, slot, {}});
}

// WIRE 6.8: answers with a good-bye, or, to a peer that says good-bye itself, with a report that it
// was heard. Another process that has closed the communicator, too, answers neither.
void Node::answer(Instant now, const Closed& closed, Rank slot, ByteSpan datagram) {
  const wire::Expectation expect{closed.epoch, closed.self, static_cast<int>(closed.slots.size())};
  wire::Prefix prefix;
  if (wire::decode_prefix(datagram, &expect, prefix) != wire::Refusal::none) return;
  const bool told =  // by an answer, which is never answered
      prefix.type == wire::PacketType::given_up || prefix.type == wire::PacketType::alive;
  if (closed.slots[prefix.source] != slot || told) return;
  wire::Report report;
  if (prefix.type == wire::PacketType::report &&
      (wire::decode_report(datagram, report) != wire::Refusal::none || report.heard_goodbye)) {
    return;
  }
  path_of(slot).on_arrival(now, prefix.sequence, datagram.size());
  if (answers_.size() == kAnswersMax) return;
  const bool parting = prefix.type == wire::PacketType::goodbye;
  answers_.push_back({{parting ? wire::PacketType::report : wire::PacketType::goodbye, closed.epoch,
                       closed.self, prefix.source},
                      slot,
                      {}});
}

void Node::on_wake(Instant now, std::uint64_t released) {
  while (!touched_.empty()) {
    Member& member = *touched_.back();
    touched_.pop_back();
    wake(now, member, released);
  }
  if (uplink_ != nullptr) uplink_->on_wake(now);
  if (now >= relays_at_) wake_relayed(now);
  if (now >= sizes_at_) {
    sizes_at_ = Instant::infinite_future();
    sizes_due_ = true;
  }
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
  queue(member);
}

// One communicator has found out that a process is dead. The others take it for dead, too.
void Node::spread_deaths(Instant now, Member& finder) {
  const auto deaths = [](const Member& member) {
    return member.engine_.endpoint().counters().peers_given_up;
  };
  if (deaths(finder) == finder.deaths_seen_) return;
  for (Rank slot = 0; slot < paths_.size(); ++slot) {
    if (paths_[slot] == nullptr || !paths_[slot]->dead()) continue;
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
  const bool measures = sizes_.most != 0;
  if ((measures || asks_size_ != nullptr) && write_size(now, out)) return true;
  bool numbered = true;
  if (!poll_any(now, out, numbered)) return false;
  if (measures && numbered && out.to() != kEveryRank) fit_to_path(now, out);
  return true;
}

// `numbered`: whether the path counts the train.
bool Node::poll_any(Instant now, protocol::TrainBuffer& out, bool& numbered) {
  if (!answers_.empty()) {
    write_answer(now, answers_.back(), out);
    const wire::PacketType type = answers_.back().prefix.type;
    numbered = type != wire::PacketType::alive && type != wire::PacketType::size;
    answers_.pop_back();
    if (uplink_ != nullptr && numbered) note_paced(now, out);
    ++trains_;
    return true;
  }
  if (uplink_ != nullptr) return poll_paced(now, out);
  while (sending_at_ < sending_.size()) {
    if (hand_out(now, *sending_[sending_at_++], out)) return true;
  }
  sending_.clear();
  sending_at_ = 0;
  return false;
}

// Hands out the next train of a member that is no longer in sending_.
bool Node::hand_out(Instant now, Member& member, protocol::TrainBuffer& out) {
  member.sends_ = false;
  const bool filled = member.engine_.poll_train(now, out);
  soonest_ = std::min(soonest_, member.engine_.wake_at());
  if (!filled) return false;
  queue(member);  // behind the others
  address(now, member, out);
  return true;
}

// Changes the address of the train from a rank of the member to a slot.
void Node::address(Instant now, Member& member, protocol::TrainBuffer& out) {
  const Rank to = out.to();
  if (to != kEveryRank) {
    out.readdress(member.slots_[to]);
    paths_[member.slots_[to]]->note_sent(out.total_bytes());
    note_relayed(now, out);
  }
  member.trains_end_ = ++trains_;
}

// Control datagrams go at once and are counted. Data go when the uplink is open.
bool Node::poll_paced(Instant now, protocol::TrainBuffer& out) {
  out.limit(uplink_->quantum_bytes());
  const bool open = uplink_->open(now);
  while (open && sending_at_ < sending_.size()) {
    Member& member = *sending_[sending_at_++];
    if (!hand_out(now, member, out)) continue;
    note_paced(now, out, member.engine_.endpoint().sender().ready_share());
    return true;
  }
  for (std::size_t i = sending_at_; i < sending_.size(); ++i) {
    Member& member = *sending_[i];
    if (!member.engine_.poll_train(now, out, Engine::Poll::control)) continue;
    soonest_ = std::min(soonest_, member.engine_.wake_at());
    address(now, member, out);
    note_paced(now, out);
    return true;
  }
  if (sending_at_ < sending_.size()) {
    uplink_->note_held_back();
  } else {
    sending_.clear();
    sending_at_ = 0;
    uplink_->note_idle();
  }
  return false;
}

void Node::note_paced(Instant now, const protocol::TrainBuffer& out, double share) {
  if (out.to() == kEveryRank) return uplink_->on_group_sent(now, out.total_bytes());
  protocol::Path& path = *paths_[out.to()];
  if (path.window() == 0) return;  // no member of this process uses the path
  uplink_->on_sent(now, out.to(),
                   {.last = path.last_sequence(),
                    .datagrams = static_cast<std::uint32_t>(out.datagrams()),
                    .segment_bytes = out.segment_bytes(),
                    .total_bytes = out.total_bytes()},
                   share);
  if (path.take_asked()) uplink_->on_asked(now, out.to());
  if (uplink_->asks(now, out.to()) || path.nears_limit()) path.ask();
}

void Node::write_answer(Instant now, const Answer& answer, protocol::TrainBuffer& out) {
  protocol::Path& path = path_of(answer.slot);
  wire::Prefix prefix = answer.prefix;
  if (prefix.type == wire::PacketType::size) {
    out.start(answer.slot);
    const MutableByteSpan scratch = out.scratch(wire::kSizeBytes);
    return out.append(wire::encode_size(prefix, answer.size, scratch), {});
  }
  if (prefix.type != wire::PacketType::alive) prefix.sequence = path.take_sequence(now);
  out.start(answer.slot);
  const MutableByteSpan scratch =
      out.scratch(wire::kReportFixedBytes + wire::kReportMarksBytes + wire::kReportHostBytes);
  if (prefix.type != wire::PacketType::report)
    return out.append(wire::encode_bare(prefix, scratch), {});
  wire::Report report;
  report.largest_sequence = path.largest_seen();
  report.received = path.received();
  report.received_bytes = path.received_bytes();
  report.arrived_us = wire::arrived_us(path.largest_arrived_at());
  report.ect = path.ect();
  report.ce = path.ce();
  report.grant = path.grant();
  report.host_drops = path.host_drops();
  report.heard_goodbye = true;
  path.on_reported();
  out.append(wire::encode_report(prefix, report, scratch), {});
}

std::optional<Instant> Node::next_wake() const {
  if (!touched_.empty()) return Instant{0};
  soonest_ = Instant::infinite_future();
  for (const auto& member : members_) soonest_ = std::min(soonest_, member->engine_.wake_at());
  Instant at = uplink_ == nullptr ? soonest_ : std::min(soonest_, uplink_->next_wake());
  at = std::min({at, sizes_at_, relays_at_});
  return at == Instant::infinite_future() ? std::nullopt : std::optional(at);
}

void Node::cancel_all(Instant now, const Status& status) {
  for (const auto& member : members_) {
    member->engine_.cancel_all(now, status);
    touch(*member);
  }
}

}  // namespace leeway::collective
