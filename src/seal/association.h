// One peer: its keys in both directions, what was sealed for it, and what was opened of it.
//
// Keys change by phases. Each phase's come of a fresh exchange, so nothing that is held later opens
// what was sealed in an earlier one. Of two peers one leads: it offers a half when the keys have
// served long enough, and goes to the next phase when the other has accepted. The other one has the
// keys by then, and follows with the first datagram of the new phase that it opens. The leader
// begins no further phase before it has opened one of this phase. So neither is ever more than one
// phase ahead of the other, however long one of the two directions loses everything.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/time.h"
#include "seal/key_exchange.h"
#include "seal/key_schedule.h"
#include "seal/path_message.h"
#include "seal/replay_window.h"

namespace leeway::seal {

struct Rotation {
  // Datagrams of a phase, sealed and opened together. AES-GCM's own limit is some 2^24.
  std::uint64_t datagrams = std::uint64_t{1} << 22;
  Duration time = std::chrono::seconds(120);
  // How long datagrams of the phase before are opened: three of the longest round trips.
  Duration old_phase = std::chrono::seconds(3);
};

class Association {
 public:
  // `exchange` outlives it.
  Association(Instant now, const PairKeys& keys, const CipherMaker& maker, KeyExchange& exchange,
              const Rotation& rotation);
  ~Association() { keys::wipe(private_half_); }
  Association(const Association&) = delete;
  Association& operator=(const Association&) = delete;

  std::uint32_t inbound_tag() const { return keys_.inbound_tag; }
  std::uint32_t outbound_tag() const { return keys_.outbound_tag; }

  // `out` is kOverheadBytes longer than the pieces.
  void seal(std::span<const Slice> pieces, MutableByteSpan out, bool path_message = false);
  // The phase has served for enough datagrams: on_wake() is due.
  bool has_served() const { return in_phase_ >= served_at_; }

  // A datagram whose header names this association. In place: Refusal::none if the bytes between
  // header and proof are the peer's. Unless it is, nothing has changed but these bytes.
  Refusal open(Instant now, const Header& header, MutableByteSpan datagram);
  // open() has begun a phase, or was the first one: settle() and next_wake() are due.
  bool is_settled() const { return is_settled_; }
  void settle(Instant now);
  // What the datagram said that was opened last.
  void on_message(Instant now, const ExchangeMessage& message);

  // Erases keys, goes on to the next phase, asks again. Each exchange of halves takes one of
  // `exchanges`; without one it is left for later.
  void on_wake(Instant now, int& exchanges);
  Instant next_wake() const { return std::min(act_at_, previous_until_); }

  // Seals what is to be sent, and gives how many bytes of `out` it takes, kMessageBytesMax at most;
  // 0: nothing.
  static constexpr std::size_t kMessageBytesMax = kExchangeMessageBytesMax + kOverheadBytes;
  bool has_message() const { return to_send_.has_value(); }
  std::size_t seal_message(MutableByteSpan out);

  std::uint64_t sending_phase() const { return sending_phase_; }
  std::uint64_t receiving_phase() const { return receiving_phase_; }
  // Of all that was opened.
  std::uint64_t newest_opened() const { return window_.largest(); }
  std::uint64_t sealed() const { return next_number_ - 1; }

 private:
  enum class Stage : std::uint8_t {
    quiet,
    offered,   // the leader: its half is out, and private_half_ here
    accepted,  // the follower: opens datagrams of the next phase already
    began,     // the leader: seals in a phase in which it has opened nothing
  };

  std::unique_ptr<Cipher> keyed(bool seals) const;
  void begin_sending_phase(Instant now);
  void begin_receiving_phase(Instant now);
  void offer(Instant now);
  void send_again(Instant now);
  void take_offer();
  void take_accept(Instant now);
  static std::size_t place_of(std::uint64_t phase) { return phase % kPhases; }

  PairKeys keys_;  // of the latest phase that was agreed on
  const CipherMaker maker_;
  KeyExchange& exchange_;
  const Rotation rotation_;

  std::unique_ptr<Cipher> sealing_;
  std::uint64_t sending_phase_ = 0;
  std::uint64_t next_number_ = 1;
  std::uint64_t in_phase_ = 0;  // datagrams sealed and opened since it began
  std::uint64_t served_at_ = UINT64_MAX;
  Instant phase_began_;

  // By phase modulo kPhases: of the phase before, the present and the next one, if these are here.
  std::array<std::unique_ptr<Cipher>, kPhases> opening_;
  std::uint64_t receiving_phase_ = 0;
  bool is_settled_ = false;
  ReplayWindow window_;

  Stage stage_ = Stage::quiet;
  keys::Key private_half_{};
  keys::Key own_half_{};                 // of the exchange that is open, public
  keys::Key peers_half_{};               // the follower: of the offer that it has accepted
  std::optional<keys::Key> heard_half_;  // to be agreed on
  std::optional<ExchangeMessage::Kind> to_send_;
  int sendings_ = 0;  // of one message
  Instant act_at_ = Instant::infinite_future();
  Instant previous_until_ = Instant::infinite_future();  // the phase before is erased then
};

}  // namespace leeway::seal
