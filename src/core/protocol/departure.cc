#include "protocol/departure.h"

#include <algorithm>

#include "base/limits.h"

namespace leeway::protocol {
namespace {

constexpr Duration kBackOff = Duration(limits::kBackOffNs);

// Quiet period after which a rank may leave, in time-outs of the slowest link. A peer that lacks
// something asks after one time-out, then after two and four more: three times in this period.
constexpr int kQuietTimeouts = 8;

// Limit on how often peers are asked whether they want nothing more from this rank
// (Group::content). Each answer starts the quiet period again, so the period passes only after the
// last question.
constexpr int kQuestionsMax = 4;

// How long this rank serves peers that are not content: 64 time-outs of the slowest link, within
// two limits. It serves for at least 4 kBackOff, the longest pause between two questions of a peer,
// so that every peer can ask a few times. It serves for at most 5 s or 16 time-outs, whichever is
// longer, because a peer may wait in a call that this rank will never make.
constexpr int kServeTimeouts = 64;
constexpr Duration kServeMin = 4 * kBackOff;
constexpr int kServeTimeoutsMin = 16;
constexpr Duration kServeMax = std::chrono::seconds(5);

// Two peers that use this process as their relay ask each other twice a second while they have an
// operation open (WIRE 9.9). So if nothing was forwarded for this long, they have none open.
constexpr Duration kRelayQuietMin = std::chrono::milliseconds(1250);
// Longest time that a relay stays for other peers.
constexpr Duration kRelayMax = std::chrono::seconds(60);

// A good-bye is repeated for at least kFarewellMin, which is longer than most outages of a network,
// and at least kFarewellTriesMin times, because kFarewellMin may pass while this process is
// stopped. To a peer that was never heard, and so may not be there, kFarewellTriesMin times are
// enough.
constexpr Duration kFarewellMin = 2 * kBackOff;
constexpr std::uint32_t kFarewellTriesMin = 12;

// Number of copies that leave together when a good-bye is repeated because no answer came in time.
constexpr int kFarewellCopies = 3;

// Number of good-byes that leave at equal pauses before the pause doubles. On some links a burst of
// losses ends after a number of packets, however long they take, so sending more packets ends it
// sooner.
constexpr std::uint32_t kTriesAtAPace = 4;

}  // namespace

void Departure::serve(Instant now, Duration slowest) {
  presence_ = Presence::serving;
  since_ = now;
  until_ = now + std::clamp(kServeTimeouts * slowest, kServeMin,
                            std::max(kServeMax, kServeTimeoutsMin * slowest));
}

std::optional<Instant> Departure::ask_again(Instant now, const Group& group) const {
  const Instant next = now + std::max(group.slowest, Duration(limits::kTickNs));
  if (relays(now, group.slowest)) return next;
  const bool may_part = group.idle && (!group.first || group.content ||
                                       group.silence >= kQuietTimeouts * group.slowest);
  if (may_part || now >= until_) return std::nullopt;
  return std::min(until_, next);
}

bool Departure::asks_peers(Instant now, const Group& group) {
  if (!group.idle || group.content || questions_ == kQuestionsMax) return false;
  if (questions_ > 0 && now < asked_at_ + group.slowest) return false;
  asked_at_ = now;
  ++questions_;
  return true;
}

bool Departure::relays(Instant now, Duration slowest) const {
  return forwarded_at_ && now - since_ < kRelayMax &&
         now - *forwarded_at_ < std::max(kQuietTimeouts * slowest, kRelayQuietMin);
}

void Departure::part(Instant now, int peers) {
  presence_ = Presence::parting;
  since_ = now;
  farewells_.resize(peers);
}

Instant Departure::owe(Instant now, Rank peer, const RoundTrip& rtt, Awaited awaited) {
  Farewell& farewell = farewells_[peer];
  farewell.due |= !farewell.said;
  farewell.given_up = awaited == Awaited::no;
  farewell.lasting = awaited == Awaited::yes;
  farewell.again_at = now + rtt.timeout();
  return farewell.again_at;
}

Departure::Wake Departure::on_wake(Instant now, Rank peer, const RoundTrip& rtt) {
  Farewell& farewell = farewells_[peer];
  if (now < farewell.again_at) return {.again_at = farewell.again_at};
  farewell.given_up =
      farewell.tries >= kFarewellTriesMin && (!farewell.lasting || now - since_ >= kFarewellMin);
  if (farewell.given_up) return {};
  farewell.due = true;
  farewell.again_at = now + rtt.timeout(++farewell.tries / kTriesAtAPace);
  return {.say = true, .again_at = farewell.again_at};
}

int Departure::take_copies(Rank peer, bool asked, int usual) {
  Farewell& farewell = farewells_[peer];
  const bool wanted = farewell.due || (asked && !farewell.answered);
  farewell.due = false;
  if (!wanted) return 0;
  farewell.said = true;
  return farewell.tries > 0 ? kFarewellCopies : usual;
}

}  // namespace leeway::protocol
