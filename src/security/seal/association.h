// Cryptographic state towards one peer: keys in both directions, numbers of sealed datagrams, and
// the replay window of opened ones.
//
// Keys change by phases. Each phase but the first has keys from a fresh exchange, so later keys do
// not open what an earlier phase sealed. One of two peers, the leader, offers its half of an
// exchange when the keys have served long enough. The follower accepts with its own half, and has
// the new keys by then. The leader then seals in the next phase, and the follower does so when it
// opens the first datagram of that phase. Before the leader has opened a datagram of the present
// phase, it begins no further one. So neither is ever more than one phase ahead of the other,
// however long one direction loses everything.
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
  // Keys change after this many datagrams, sealed and opened together. The limit of AES-GCM is some
  // 2^24.
  std::uint64_t datagrams = std::uint64_t{1} << 22;
  Duration time = std::chrono::seconds(120);
  // How long datagrams of the previous phase are still opened: three round trips of the longest
  // path, at 1 s each.
  Duration old_phase = std::chrono::seconds(3);
};

class Association {
 public:
  // `exchange` must outlive the object.
  Association(Instant now, const PairKeys& keys, const CipherMaker& maker, KeyExchange& exchange,
              const Rotation& rotation);
  ~Association() { keys::wipe(private_half_); }
  Association(const Association&) = delete;
  Association& operator=(const Association&) = delete;

  std::uint32_t inbound_tag() const { return keys_.inbound_tag; }
  std::uint32_t outbound_tag() const { return keys_.outbound_tag; }

  // Seals the pieces as one datagram. `out` must be kOverheadBytes longer than the pieces.
  void seal(std::span<const Slice> pieces, MutableByteSpan out, bool path_message = false);
  // Returns whether the phase has served for enough datagrams, so that on_wake() is due.
  bool has_served() const { return in_phase_ >= served_at_; }

  // Opens in place a datagram whose header names this association. Returns Refusal::none if the
  // peer sealed the bytes between header and proof. Otherwise only these bytes have changed.
  Refusal open(Instant now, const Header& header, MutableByteSpan datagram);
  // Returns false if open() has just opened the first datagram of a peer or of a phase. Then call
  // settle(), and next_wake() may be earlier.
  bool is_settled() const { return is_settled_; }
  void settle(Instant now);
  // Takes in the message that the latest opened datagram held.
  void on_message(Instant now, const ExchangeMessage& message);

  // Erases old keys, goes on to the next phase, and repeats unanswered messages. Each key exchange
  // takes one from `exchanges`; if none is left, the exchange waits for a later call.
  void on_wake(Instant now, int& exchanges);
  Instant next_wake() const { return std::min(act_at_, previous_until_); }

  // seal_message() seals the waiting message into `out`. It returns how many bytes that took, at
  // most kMessageBytesMax, or 0 if no message waits.
  static constexpr std::size_t kMessageBytesMax = kExchangeMessageBytesMax + kOverheadBytes;
  bool has_message() const { return to_send_.has_value(); }
  std::size_t seal_message(MutableByteSpan out);

  std::uint64_t sending_phase() const { return sending_phase_; }
  std::uint64_t receiving_phase() const { return receiving_phase_; }
  // Largest number among the opened datagrams.
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

  PairKeys keys_;  // keys of the latest phase that was agreed on
  const CipherMaker maker_;
  KeyExchange& exchange_;
  const Rotation rotation_;

  std::unique_ptr<Cipher> sealing_;
  std::uint64_t sending_phase_ = 0;
  std::uint64_t next_number_ = 1;
  std::uint64_t in_phase_ = 0;  // datagrams sealed and opened since it began
  std::uint64_t served_at_ = UINT64_MAX;
  Instant phase_began_;

  // Ciphers of the previous, the present and the next phase, where they exist; index: phase modulo
  // kPhases.
  std::array<std::unique_ptr<Cipher>, kPhases> opening_;
  std::uint64_t receiving_phase_ = 0;
  bool is_settled_ = false;
  ReplayWindow window_;

  Stage stage_ = Stage::quiet;
  keys::Key private_half_{};
  keys::Key own_half_{};                 // public, for the exchange in progress
  keys::Key peers_half_{};               // the follower: half of the offer that it has accepted
  std::optional<keys::Key> heard_half_;  // received half, still to be agreed on
  std::optional<ExchangeMessage::Kind> to_send_;
  int sendings_ = 0;  // sendings of the current message
  Instant act_at_ = Instant::infinite_future();
  Instant previous_until_ = Instant::infinite_future();  // when the previous phase is erased
};

}  // namespace leeway::seal
