// One peer: its keys in both directions, what was sealed for it, and what was opened of it.
//
// Keys change by phases. Of two peers one leads: it goes to the next phase when the keys have
// served long enough, and only after it has opened a datagram of the present phase. The other one
// follows with the first datagram of the new phase that it opens. So neither is ever more than one
// phase ahead of the other, however long one of the two directions loses everything.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/time.h"
#include "seal/key_schedule.h"
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
  Association(Instant now, const PairKeys& keys, const CipherMaker& maker, std::uint8_t lane,
              const Rotation& rotation);
  ~Association();
  Association(const Association&) = delete;
  Association& operator=(const Association&) = delete;

  std::uint32_t inbound_tag() const { return inbound_tag_; }
  std::uint32_t outbound_tag() const { return outbound_tag_; }

  // Once before the datagrams of a train: the leader may begin a phase.
  void on_train(Instant now);
  // `out` is kOverheadBytes longer than the pieces.
  void seal(std::span<const Slice> pieces, MutableByteSpan out, bool path_message = false);

  // A datagram whose header names this association. In place: Refusal::none if the bytes between
  // header and proof are the peer's. Unless it is, nothing has changed but these bytes.
  Refusal open(Instant now, const Header& header, MutableByteSpan datagram);

  std::uint64_t sending_phase() const { return sending_phase_; }
  std::uint64_t receiving_phase() const { return receiving_phase_; }
  // Of all that was opened.
  std::uint64_t newest_opened() const { return window_.largest(); }
  std::uint64_t sealed() const { return next_number_ - 1; }

 private:
  // Which of opening_ has the key of the phase that the header names.
  enum Place : std::size_t { kPrevious, kPresent, kNext, kPlaces };

  void begin_sending_phase(Instant now);
  void begin_receiving_phase(Instant now);
  Place place_of(const Header& header) const;

  const std::uint8_t lane_;
  const bool leads_;
  const std::uint32_t outbound_tag_;
  const std::uint32_t inbound_tag_;
  const Rotation rotation_;

  std::unique_ptr<Cipher> sealing_;
  keys::Key sending_secret_;  // of the phase after the present one
  std::uint64_t sending_phase_ = 0;
  std::uint64_t next_number_ = 1;
  std::uint64_t in_phase_ = 0;  // datagrams sealed and opened since it began
  Instant phase_began_;

  std::array<std::unique_ptr<Cipher>, kPlaces> opening_;
  keys::Key receiving_secret_;  // of the phase after the next one
  std::uint64_t receiving_phase_ = 0;
  Instant previous_until_;  // the key of the phase before is gone then
  ReplayWindow window_;
};

}  // namespace leeway::seal
