#include "seal/association.h"

#include <algorithm>
#include <utility>

namespace leeway::seal {
namespace {

using namespace std::chrono_literals;

// Pauses before an unanswered offer or confirm is sent again. After kSendingsOften sendings the
// peer may be gone or stopped, so the pauses are longer.
constexpr Duration kPauseMin = 20ms;
constexpr Duration kPauseMax = 1s;
constexpr int kSendingsOften = 60;
constexpr Duration kPauseOfTheSilent = 15s;

Duration pause_after(int sendings) {
  if (sendings >= kSendingsOften) return kPauseOfTheSilent;
  return std::min<Duration>(kPauseMin * (1 << std::min(sendings, 6)), kPauseMax);
}

}  // namespace

Association::Association(Instant now, const PairKeys& keys, const CipherMaker& maker,
                         KeyExchange& exchange, const Rotation& rotation)
    : keys_(keys), maker_(maker), exchange_(exchange), rotation_(rotation), phase_began_(now) {
  sealing_ = keyed(true);
  opening_[0] = keyed(false);
}

std::unique_ptr<Cipher> Association::keyed(bool seals) const {
  auto cipher = maker_(seals);
  key_cipher(keys_, seals, *cipher);
  return cipher;
}

void Association::seal(std::span<const Slice> pieces, MutableByteSpan out, bool path_message) {
  const std::uint64_t number = next_number_++;
  encode_header({.path_message = path_message,
                 .phase = static_cast<std::uint8_t>(place_of(sending_phase_)),
                 .lane = keys_.lane,
                 .tag = keys_.outbound_tag,
                 .counter = number},
                out);
  sealing_->seal(number, pieces, out);
  ++in_phase_;
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
  Cipher* const cipher = opening_[header.phase].get();
  if (cipher == nullptr) return Refusal::phase;
  if (!cipher->open(header.counter, datagram)) return Refusal::forged;
  window_.commit(header.counter);
  if (header.phase == place_of(receiving_phase_ + 1)) begin_receiving_phase(now);
  ++in_phase_;
  return Refusal::none;
}

void Association::begin_sending_phase(Instant now) {
  sealing_ = keyed(true);
  ++sending_phase_;
  in_phase_ = 0;
  phase_began_ = now;
}

// Call it when the first datagram of the peer's next phase was opened. If this side follows, it
// begins to seal in that phase, too.
void Association::begin_receiving_phase(Instant now) {
  opening_[place_of(receiving_phase_ - 1)].reset();
  ++receiving_phase_;
  previous_until_ = now + rotation_.old_phase;
  is_settled_ = false;
  stage_ = Stage::quiet;
  to_send_.reset();
  if (keys_.leads) {
    served_at_ = rotation_.datagrams;
    act_at_ = phase_began_ + rotation_.time;
  } else {
    begin_sending_phase(now);
  }
}

// Keys of phase 0 follow from secrets that live as long as the process. So the leader ends phase 0
// as soon as it hears the peer.
void Association::settle(Instant now) {
  is_settled_ = true;
  if (keys_.leads && sending_phase_ == 0) act_at_ = std::min(act_at_, now);
}

void Association::on_message(Instant now, const ExchangeMessage& message) {
  --in_phase_;  // messages that change keys must not cause another change of keys
  const bool of_next = message.phase == static_cast<std::uint32_t>(sending_phase_ + 1);
  switch (message.kind) {
    case ExchangeMessage::Kind::offer:
      if (keys_.leads || !of_next) return;
      if (stage_ == Stage::quiet) {
        heard_half_ = message.half;
      } else if (message.half == peers_half_) {
        to_send_ = ExchangeMessage::Kind::accept;
      }
      break;
    case ExchangeMessage::Kind::accept:
      if (stage_ != Stage::offered || !of_next) return;
      heard_half_ = message.half;
      break;
    case ExchangeMessage::Kind::confirm:
      if (keys_.leads) return;
      to_send_ = ExchangeMessage::Kind::confirmed;
      break;
    case ExchangeMessage::Kind::confirmed:
      return;
  }
  act_at_ = now;
}

void Association::on_wake(Instant now, int& exchanges) {
  if (now >= previous_until_) {
    opening_[place_of(receiving_phase_ - 1)].reset();
    previous_until_ = Instant::infinite_future();
  }
  if (now < act_at_ && !has_served()) return;
  if (!keys_.leads) {
    if (heard_half_ && exchanges-- <= 0) return;
    if (heard_half_) take_offer();
    act_at_ = Instant::infinite_future();
  } else if (heard_half_) {
    if (exchanges-- > 0) take_accept(now);
  } else if (stage_ != Stage::quiet) {
    send_again(now);
  } else if (in_phase_ == 0) {
    act_at_ = now + rotation_.time;  // keys that were not used stay
  } else if (exchanges-- > 0) {
    offer(now);
  } else {
    act_at_ = now;
  }
}

void Association::offer(Instant now) {
  if (auto halves = exchange_.make(keys_.root)) {
    private_half_ = halves->private_half;
    own_half_ = halves->public_half;
    stage_ = Stage::offered;
    served_at_ = UINT64_MAX;
    sendings_ = 0;
    send_again(now);
  } else {
    act_at_ = now + kPauseMax;
  }
}

void Association::send_again(Instant now) {
  to_send_ =
      stage_ == Stage::offered ? ExchangeMessage::Kind::offer : ExchangeMessage::Kind::confirm;
  act_at_ = now + pause_after(sendings_);
  sendings_ = std::min(sendings_ + 1, kSendingsOften);
}

// Accepts the leader's offer. From now on the leader may seal in the next phase, so this side must
// be able to open that phase.
void Association::take_offer() {
  const keys::Key offered = *std::exchange(heard_half_, std::nullopt);
  const auto halves = exchange_.make(keys_.root);
  auto agreed = halves ? exchange_.agree(halves->private_half, offered) : std::nullopt;
  if (!agreed) return;  // the leader asks again
  next_phase(keys_, *agreed);
  keys::wipe(*agreed);
  own_half_ = halves->public_half;
  peers_half_ = offered;
  opening_[place_of(receiving_phase_ + 1)] = keyed(false);
  stage_ = Stage::accepted;
  to_send_ = ExchangeMessage::Kind::accept;
}

void Association::take_accept(Instant now) {
  auto agreed = exchange_.agree(private_half_, *std::exchange(heard_half_, std::nullopt));
  if (!agreed) return send_again(now);
  next_phase(keys_, *agreed);
  keys::wipe(*agreed);
  keys::wipe(private_half_);
  opening_[place_of(receiving_phase_ + 1)] = keyed(false);
  begin_sending_phase(now);
  stage_ = Stage::began;
  sendings_ = 0;
  send_again(now);
}

std::size_t Association::seal_message(MutableByteSpan out) {
  if (!to_send_) return 0;
  std::array<std::byte, kExchangeMessageBytesMax> message;
  const std::size_t bytes =
      encode_exchange_message({*std::exchange(to_send_, std::nullopt),
                               static_cast<std::uint32_t>(sending_phase_ + 1), own_half_},
                              message);
  const Slice piece{message.data(), bytes};
  seal({&piece, 1}, out.first(bytes + kOverheadBytes), /*path_message=*/true);
  --in_phase_;
  return bytes + kOverheadBytes;
}

}  // namespace leeway::seal
