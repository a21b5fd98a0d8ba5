#include "seal/association.h"

#include <utility>

namespace leeway::seal {
namespace {

constexpr std::uint64_t bits_of(std::uint64_t phase) {
  return phase % kPhases;
}

// Gives the secret, and puts its successor in its place.
void advance(keys::Key& secret, Cipher& cipher) {
  key_cipher(secret, cipher);
  keys::Key next = next_phase(secret);
  keys::wipe(secret);
  secret = next;
  keys::wipe(next);
}

}  // namespace

Association::Association(Instant now, const PairKeys& keys, const CipherMaker& maker,
                         std::uint8_t lane, const Rotation& rotation)
    : lane_(lane),
      leads_(keys.leads),
      outbound_tag_(keys.outbound.tag),
      inbound_tag_(keys.inbound.tag),
      rotation_(rotation),
      sealing_(maker(true)),
      sending_secret_(keys.outbound.secret),
      phase_began_(now),
      receiving_secret_(keys.inbound.secret),
      previous_until_(now) {
  for (auto& cipher : opening_) cipher = maker(false);
  advance(sending_secret_, *sealing_);
  advance(receiving_secret_, *opening_[kPresent]);
  advance(receiving_secret_, *opening_[kNext]);
}

Association::~Association() {
  keys::wipe(sending_secret_);
  keys::wipe(receiving_secret_);
}

void Association::on_train(Instant now) {
  const bool due = in_phase_ >= rotation_.datagrams || now - phase_began_ >= rotation_.time;
  if (due && leads_ && receiving_phase_ == sending_phase_) begin_sending_phase(now);
}

void Association::begin_sending_phase(Instant now) {
  advance(sending_secret_, *sealing_);
  ++sending_phase_;
  in_phase_ = 0;
  phase_began_ = now;
}

void Association::seal(std::span<const Slice> pieces, MutableByteSpan out, bool path_message) {
  const std::uint64_t number = next_number_++;
  encode_header({.path_message = path_message,
                 .phase = static_cast<std::uint8_t>(bits_of(sending_phase_)),
                 .lane = lane_,
                 .tag = outbound_tag_,
                 .counter = number},
                out);
  sealing_->seal(number, pieces, out);
  ++in_phase_;
}

Association::Place Association::place_of(const Header& header) const {
  if (header.phase == bits_of(receiving_phase_)) return kPresent;
  if (header.phase == bits_of(receiving_phase_ + 1)) return kNext;
  return receiving_phase_ > 0 && header.phase == bits_of(receiving_phase_ - 1) ? kPrevious
                                                                               : kPlaces;
}

Refusal Association::open(Instant now, const Header& header, MutableByteSpan datagram) {
  switch (window_.look(header.counter)) {
    case ReplayWindow::Verdict::too_old:
      return Refusal::too_old;
    case ReplayWindow::Verdict::seen:
      return Refusal::replayed;
    case ReplayWindow::Verdict::fresh:
      break;
  }
  const Place place = place_of(header);
  if (place == kPlaces || (place == kPrevious && now >= previous_until_)) return Refusal::phase;
  if (!opening_[place]->open(header.counter, datagram)) return Refusal::forged;
  window_.commit(header.counter);
  ++in_phase_;
  if (place == kNext) begin_receiving_phase(now);
  return Refusal::none;
}

// The peer has gone on. Whoever does not lead goes with it.
void Association::begin_receiving_phase(Instant now) {
  std::swap(opening_[kPrevious], opening_[kPresent]);
  std::swap(opening_[kPresent], opening_[kNext]);
  advance(receiving_secret_, *opening_[kNext]);  // which was that of the phase before the last
  ++receiving_phase_;
  previous_until_ = now + rotation_.old_phase;
  if (sending_phase_ < receiving_phase_) begin_sending_phase(now);
}

}  // namespace leeway::seal
