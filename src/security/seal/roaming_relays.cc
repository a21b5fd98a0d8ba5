// Finds a relay for a peer without a path of its own.
//
// This needs no agreement between processes. A challenge goes through other peers, sealed end to
// end, and a peer through which the answer comes back has a path to both. So any peer may relay,
// and each of the two chooses for its own direction.
#include <algorithm>
#include <utility>

#include "seal/roaming.h"

namespace leeway::seal {
namespace {

using namespace std::chrono_literals;

// Peers asked at a time. The first one through which an answer comes has the shortest path.
constexpr int kAskedAtOnce = 8;
// Pauses between rounds of questions: at first, and at most. After kSearches rounds without an
// answer they are kSearchSlowly.
constexpr Duration kSearchPause = 100ms;
constexpr Duration kSearchPauseMax = 1s;
constexpr Duration kNobodyPause = 250ms;  // pause while nobody could be asked
constexpr std::uint64_t kSearches = 64;
constexpr Duration kSearchSlowly = 30s;
// A relay is asked from time to time whether it still reaches the peer. After this many unanswered
// questions in a row, another one is looked for. At 10 % loss on each of four hops this happens
// without need one time in 70, which costs a few datagrams.
constexpr std::uint64_t kAsksOfRelay = 4;
constexpr Duration kAskAgain = 150ms;

}  // namespace

bool Roaming::may_relay(Rank slot) const {
  return slot < peers_.size() && peers_[slot].settled;
}

// Call it when the peer has no path of its own. A present relay goes on meanwhile.
void Roaming::await_help(Instant now, Rank slot, Duration patience) {
  Help& help = peers_[slot].help;
  help.searching = true;
  help.token = new_token();
  help.began = now;
  help.next_at = now + patience;
}

void Roaming::end_help(Instant now, Rank slot) {
  Peer& peer = peers_[slot];
  const bool relayed = peer.help.via != kNoRank;
  peer.help = {};
  if (relayed) note_move({slot, peer.current});
  activate(now, slot);
}

void Roaming::wake_help(Instant now, Rank slot) {
  Peer& peer = peers_[slot];
  Help& help = peer.help;
  if (peer.settled || now < help.next_at) return;
  const std::uint64_t asked = help.token & 0xFF;
  if (!help.searching && (asked == kAsksOfRelay || !may_relay(help.via))) await_help(now, slot, {});
  if (help.searching) return search_help(now, slot);
  help.next_at = now + std::max<Duration>(3 * help.rtt / 2, kAskAgain);
  ask_through(now, slot, help.via);
}

// Asks peers in turn, beginning with the one through which the peer asked us.
void Roaming::search_help(Instant now, Rank slot) {
  Help& help = peers_[slot].help;
  const std::uint64_t asked = help.token & 0xFF;
  const auto pause = asked >= kSearches
                         ? kSearchSlowly
                         : std::min<Duration>(kSearchPause * (asked + 1), kSearchPauseMax);
  help.next_at = now + pause;
  int left = kAskedAtOnce;
  const auto ask = [&](Rank via) {
    if (via == slot || !may_relay(via)) return;
    if (left-- == kAskedAtOnce && asked < 0xFF) ++help.token;
    help.asked_at = now;
    put_out({slot, {}, {PathMessage::Kind::challenge, help.token, peers_[slot].current}, via});
    ++counters_.challenges;
  };
  if (help.hint != kNoRank) ask(help.hint);
  for (std::size_t looked = 0; looked < peers_.size() && left > 0; ++looked) {
    const Rank via = help.next;
    help.next = static_cast<Rank>((help.next + 1) % peers_.size());
    if (via != help.hint) ask(via);
  }
  if (left == kAskedAtOnce) help.next_at = now + kNobodyPause;
}

void Roaming::ask_through(Instant now, Rank slot, Rank via) {
  Help& help = peers_[slot].help;
  if ((help.token & 0xFF) < 0xFF) ++help.token;
  help.asked_at = now;
  ++counters_.challenges;
  put_out({slot, {}, {PathMessage::Kind::challenge, help.token, peers_[slot].current}, via});
}

void Roaming::on_relayed_message(Instant now, Rank slot, Rank via, const PathMessage& message) {
  switch (message.kind) {
    case PathMessage::Kind::challenge:
      take_hint(now, slot, via);
      put_out({slot, {}, {PathMessage::Kind::answer, message.token, peers_[slot].current}, via});
      break;
    case PathMessage::Kind::answer:
      on_help(now, slot, via, message.token);
      break;
    case PathMessage::Kind::keep_alive:
      break;
    case PathMessage::Kind::whereabouts:
      on_whereabouts(now, message);
      break;
  }
}

// Notes that the peer asked through `via`, which therefore reaches both.
void Roaming::take_hint(Instant now, Rank slot, Rank via) {
  Peer& peer = peers_[slot];
  if (std::exchange(peer.help.hint, via) == via) return;
  if (peer.settled || !peer.help.searching || now - peer.met_at < kRelayAfter) return;
  peer.help.next_at = std::min(peer.help.next_at, now + kSearchPause);
  wake_by(peer.help.next_at);
}

void Roaming::on_help(Instant now, Rank slot, Rank via, std::uint64_t token) {
  Peer& peer = peers_[slot];
  Help& help = peer.help;
  if (peer.settled || !may_relay(via) || (help.token & 0xFF) == 0 ||
      (help.token | 0xFF) != (token | 0xFF))
    return;
  if (!help.searching && via != help.via) return;  // slower than the present relay
  help.rtt =
      std::max<Duration>(now - (token == help.token ? help.asked_at : help.began), Duration(1));
  help.searching = false;
  help.token = new_token();
  help.next_at = now + pause() / 2;
  wake_by(help.next_at);
  if (help.via == via) return;
  help.via = via;
  ++counters_.relays;
  note_move({slot, {}, false, via});
}

}  // namespace leeway::seal
