// Leaving. A rank that is done may still be waited for: its last confirmation was lost, or a packet
// of its. It stays and serves until its peers are quiet. Quiet may be a burst of losses, and who
// hears nothing any more waits until its deadline; so the good-bye, which settles all that a peer
// may wait for, is repeated until the peer answers (WIRE 6.2 to 6.4).
#include <algorithm>

#include "base/limits.h"
#include "protocol/endpoint.h"

namespace leeway::protocol {
namespace {

constexpr Duration kBackOff = Duration(limits::kBackOffNs);

// For how many time-outs of the slowest link nothing was heard of any peer. (Who lacks something
// asks after one, then two, ...)
constexpr int kQuietTimeouts = 8;

// How long peers that are not content are served: so many time-outs, and a few questions that are
// asked as rarely as any.
constexpr int kServeTimeouts = 64;
constexpr Duration kServeMin = 4 * kBackOff;

// How long a good-bye is repeated: longer than most outages of a network, and so many times in any
// case, also by a process that was stopped meanwhile.
constexpr Duration kFarewellMin = 2 * kBackOff;
constexpr std::uint32_t kFarewellTriesMin = 12;

// Of a good-bye that was not answered at once.
constexpr int kFarewellCopies = 3;

// Tries at the same pace before the pause doubles. Bursts are counted in packets on some links, and
// end the sooner the more are sent.
constexpr std::uint32_t kTriesAtAPace = 4;

}  // namespace

Duration Endpoint::slowest_timeout() const {
  Duration slowest{0};
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer != config_.self && !links_[peer].gone)
      slowest = std::max(slowest, links_[peer].rtt.timeout());
  }
  return slowest;
}

void Endpoint::leave(Instant now) {
  if (presence_ != Presence::here) return;
  presence_ = Presence::serving;
  leave_since_ = now;
  leave_until_ = now + std::max(kServeTimeouts * slowest_timeout(), kServeMin);
  wake_leave(now);
}

void Endpoint::wake_leave(Instant now) {
  if (presence_ != Presence::serving) return;
  const Duration timeout = slowest_timeout();
  Duration quiet = now - leave_since_;
  bool first = true;  // to leave: those that follow need not find out once more that all are quiet
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (heard_[peer]) quiet = std::min(quiet, links_[peer].silence(now));
    first &= !links_[peer].gone;
  }
  const bool content = idle() && (!first || quiet >= kQuietTimeouts * timeout);
  if (content || now >= leave_until_) return say_goodbye(now);
  timers_.arm(kLeaveTimer,
              std::min(leave_until_, now + std::max(timeout, Duration(limits::kTickNs))));
}

void Endpoint::say_goodbye(Instant now) {
  presence_ = Presence::parting;
  cancel_all(now,
             Status::error(StatusCode::kCancelled, "rank %u: communicator closed", config_.self));
  farewells_.resize(config_.size);
  for (Rank peer = 0; peer < config_.size; ++peer) {
    Link& link = links_[peer];
    link.report_at = link.probe_at = Instant::infinite_future();
    if (peer == config_.self || link.gone) continue;
    farewells_[peer].again_at = now + link.rtt.timeout();
    arm_link(peer, farewells_[peer].again_at);
    farewells_[peer].given_up = !heard_[peer];  // who was never there is told once
    queue_control(peer);
  }
  group_probe_due_ = false;
  group_probe_at_ = Instant::infinite_future();
  parting_since_ = now;
}

bool Endpoint::parted(Rank peer) const {
  return peer == config_.self || links_[peer].gone || farewells_[peer].answered ||
         farewells_[peer].given_up;
}

void Endpoint::wake_farewell(Instant now, Rank peer) {
  if (presence_ != Presence::parting || parted(peer)) return;
  Farewell& farewell = farewells_[peer];
  if (farewell.again_at <= now) {
    farewell.given_up = farewell.tries >= kFarewellTriesMin && now - parting_since_ >= kFarewellMin;
    if (farewell.given_up) return;
    farewell.due = true;
    farewell.again_at = now + links_[peer].rtt.timeout(++farewell.tries / kTriesAtAPace);
    queue_control(peer);
  }
  arm_link(peer, farewell.again_at);
}

void Endpoint::on_farewell_answer(Rank peer, const wire::Report& report) {
  Farewell& farewell = farewells_[peer];
  farewell.answered |= farewell.first && !after(*farewell.first, report.largest_sequence);
}

// In place of whatever else was to be said: a report about any of these datagrams shows then that
// the good-bye was heard.
bool Endpoint::write_farewell(Instant now, Rank peer, TrainBuffer& out) {
  Link& link = links_[peer];
  Farewell& farewell = farewells_[peer];
  const bool wanted = farewell.due || (link.report_due && !farewell.answered);
  farewell.due = link.report_due = link.probe_due = false;
  link.on_reported();
  if (!wanted) return false;
  const int copies = farewell.tries > 0 ? kFarewellCopies : copies_to(peer);
  for (int copy = 0; copy < copies; ++copy) {
    const wire::Prefix goodbye = prefix(wire::PacketType::goodbye, peer, now);
    if (!farewell.first) farewell.first = goodbye.sequence;
    out.append(wire::encode_bare(goodbye, out.scratch(wire::kPrefixBytes)), {});
  }
  return true;
}

bool Endpoint::left() const {
  if (presence_ != Presence::parting || !control_links_.empty()) return false;
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (!parted(peer)) return false;
  }
  return true;
}

}  // namespace leeway::protocol
