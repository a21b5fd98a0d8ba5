#include "seal/roaming_state.h"

#include "base/philox.h"

namespace leeway::seal {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kOutgoingMax = 1024;
constexpr Duration kRoundTripMin = 5ms;
constexpr Duration kRoundTripMax = 500ms;
// Keep-alive interval while operations are open. It is short, because a peer that only waits must
// be heard soon after its address changed.
constexpr Duration kKeepAliveBusy = 1s;

}  // namespace

Place* RoamingState::Peer::trial_at(const NetworkAddress& address) {
  for (Place& trial : trials) {
    if (trial.known() && trial.address == address) return &trial;
  }
  return nullptr;
}

Duration RoamingState::Peer::round_trip() const {
  Duration longest = std::max<Duration>(rtt, kRoundTripMin);
  for (const Place& trial : trials) {
    if (trial.known() && trial.answered) longest = std::max(longest, trial.rtt);
  }
  return std::min<Duration>(longest, kRoundTripMax);
}

RoamingState::Peer& RoamingState::add(Rank slot) {
  if (slot >= peers.size()) peers.resize(slot + std::size_t{1});
  if (out.empty()) out.resize(kOutgoingMax);
  active.reserve(peers.size());
  moves.reserve(2 * peers.size());
  return peers[slot];
}

void RoamingState::activate(Instant now, Rank slot) {
  wake_by(now);
  if (peers[slot].active) return;
  peers[slot].active = true;
  active.push_back(slot);
}

std::uint64_t RoamingState::new_token() {
  const std::uint64_t number = tokens++;
  return keyed_hash(seed, 0x50415448, static_cast<std::uint32_t>(number),
                    static_cast<std::uint32_t>(number >> 32), 0) &
         ~std::uint64_t{0xFF};
}

void RoamingState::put_out(const Outgoing& outgoing) {
  if (out_count == out.size()) return;
  out[(out_first + out_count++) % out.size()] = outgoing;
}

std::optional<RoamingState::Outgoing> RoamingState::poll() {
  if (out_count == 0) return std::nullopt;
  const Outgoing outgoing = out[out_first];
  out_first = (out_first + 1) % out.size();
  --out_count;
  return outgoing;
}

void RoamingState::note_move(const Move& move) {
  std::erase_if(moves, [&](const Move& earlier) { return earlier.slot == move.slot; });
  moves.push_back(move);
}

std::optional<RoamingState::Move> RoamingState::poll_move() {
  if (moves.empty()) return std::nullopt;
  const Move move = moves.back();
  moves.pop_back();
  return move;
}

Duration RoamingState::pause() const {
  return busy ? std::min(idle_pause, kKeepAliveBusy) : idle_pause;
}

}  // namespace leeway::seal
