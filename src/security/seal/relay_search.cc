#include "seal/relay_search.h"

#include <algorithm>
#include <utility>

namespace leeway::seal {
namespace {

using namespace std::chrono_literals;

// If no address of a peer has answered after this time, a relay is looked for.
constexpr Duration kRelayAfter = 1s;
// Limit on the peers through which challenges go at a time. The peer whose answer comes first
// becomes the relay, since its path is the shortest.
constexpr int kAskedAtOnce = 8;
// Pauses between rounds of challenges: the first, and the longest. After kSearches rounds without
// an answer the pause is kSearchSlowly.
constexpr Duration kSearchPause = 100ms;
constexpr Duration kSearchPauseMax = 1s;
constexpr Duration kNobodyPause = 250ms;  // pause while nobody could be asked
constexpr std::uint64_t kSearches = 64;
constexpr Duration kSearchSlowly = 30s;
// A relay is challenged from time to time, to see whether it still reaches the peer. After this
// many unanswered challenges in a row, another relay is looked for. A challenge and its answer take
// four hops. At 10 % loss on each hop, one in 70 working relays is given up by mistake, which costs
// a few datagrams.
constexpr std::uint64_t kAsksOfRelay = 4;
constexpr Duration kAskAgain = 150ms;

}  // namespace

void RelaySearch::meet(Instant now, Rank slot) {
  if (slot >= helps_.size()) helps_.resize(slot + std::size_t{1});
  begin(now, slot, kRelayAfter);
}

// Begins to search a relay for the peer. If the peer has a relay, that relay forwards until the
// search has ended.
void RelaySearch::begin(Instant now, Rank slot, Duration patience) {
  Help& help = helps_[slot];
  help.searching = true;
  help.begin(now, state_.new_token(), now + patience);
}

void RelaySearch::on_lost(Instant now, Rank slot) {
  begin(now, slot, {});
  for (Help& other : helps_) {
    if (other.via == slot) other.next_at = now;
  }
}

void RelaySearch::on_settled(Rank slot) {
  const Help before = std::exchange(helps_[slot], {});
  if (before.via != kNoRank) state_.note_move({slot, state_.peers[slot].current});
}

void RelaySearch::take_hint(Instant now, Rank slot, Rank via) {
  const RoamingState::Peer& peer = state_.peers[slot];
  Help& help = helps_[slot];
  if (std::exchange(help.hint, via) == via) return;
  if (peer.settled || !help.searching || now - peer.met_at < kRelayAfter) return;
  help.next_at = std::min(help.next_at, now + kSearchPause);
  state_.wake_by(help.next_at);
}

void RelaySearch::on_answer(Instant now, Rank slot, Rank via, std::uint64_t token) {
  Help& help = helps_[slot];
  if (state_.peers[slot].settled || !may_relay(via) || !help.asked_with(token)) return;
  if (!help.searching && via != help.via) return;  // slower than the present relay
  help.on_answer(now, token);
  help.searching = false;
  help.token = state_.new_token();
  help.next_at = now + state_.pause() / 2;
  state_.wake_by(help.next_at);
  if (help.via == via) return;
  help.via = via;
  ++state_.counters.relays;
  state_.note_move({slot, {}, false, via});
}

void RelaySearch::ask_relays_by(Instant at) {
  for (Help& help : helps_) {
    if (help.via != kNoRank) help.next_at = std::min(help.next_at, at);
  }
}

void RelaySearch::on_wake(Instant now, Rank slot) {
  if (now >= helps_[slot].next_at) ask(now, slot);
  state_.wake_by(helps_[slot].next_at);
}

void RelaySearch::ask(Instant now, Rank slot) {
  Help& help = helps_[slot];
  if (!help.searching && (help.asked() == kAsksOfRelay || !may_relay(help.via)))
    begin(now, slot, {});
  if (help.searching) return search(now, slot);
  help.next_at = now + std::max<Duration>(3 * help.rtt / 2, kAskAgain);
  help.count(now);
  challenge(slot, help.via);
}

// Challenges the peer through others in turn, first through the one by which the peer challenged
// us.
void RelaySearch::search(Instant now, Rank slot) {
  Help& help = helps_[slot];
  const auto pause = help.asked() >= kSearches
                         ? kSearchSlowly
                         : std::min<Duration>(kSearchPause * (help.asked() + 1), kSearchPauseMax);
  help.next_at = now + pause;
  int left = kAskedAtOnce;
  const auto ask = [&](Rank via) {
    if (via == slot || !may_relay(via)) return;
    if (left-- == kAskedAtOnce) help.count(now);
    challenge(slot, via);
  };
  if (help.hint != kNoRank) ask(help.hint);
  const std::size_t size = state_.peers.size();
  for (std::size_t looked = 0; looked < size && left > 0; ++looked) {
    const Rank via = help.next;
    help.next = static_cast<Rank>((help.next + 1) % size);
    if (via != help.hint) ask(via);
  }
  if (left == kAskedAtOnce) help.next_at = now + kNobodyPause;
}

void RelaySearch::challenge(Rank slot, Rank via) {
  ++state_.counters.challenges;
  state_.put_out({slot,
                  {},
                  {PathMessage::Kind::challenge, helps_[slot].token, state_.peers[slot].current},
                  via});
}

bool RelaySearch::may_relay(Rank slot) const {
  return slot < state_.peers.size() && state_.peers[slot].settled;
}

}  // namespace leeway::seal
