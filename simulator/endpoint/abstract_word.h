// What a packet of the abstract endpoints says: one word, Packet::word.
//
// The fields are those of the wire (proto/README.md) that the protocol's arithmetic needs. Counters
// travel modulo a power of two and are read as the value nearest to what the receiver knows.
#pragma once

#include <cstdint>

namespace leeway::sim {

enum class AbstractType : std::uint8_t { data = 0, report = 1, end = 2, repair = 3, probe = 4 };

// Bits of the counters on the wire. A link's window stays below half of what 16 bits count.
inline constexpr int kOpenedBits = 5;
inline constexpr int kSequenceBits = 16;

// The number nearest to `near` whose lowest `bits` are those of `seen`.
constexpr std::uint32_t nearest_count(std::uint32_t seen, std::uint32_t near, int bits) {
  const int unused = 32 - bits;
  const auto ahead = static_cast<std::int32_t>((seen - near) << unused) >> unused;
  return near + static_cast<std::uint32_t>(ahead);
}

// Serial comparison of counters that may wrap, as in protocol/link.h.
constexpr bool later(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0;
}

class AbstractWord {
 public:
  constexpr explicit AbstractWord(std::uint64_t word) : word_(word) {}
  // `opened`: the calls that the flow's call, or the reporter, has opened so far, itself included.
  constexpr AbstractWord(AbstractType type, std::uint32_t opened, std::uint32_t sequence) {
    put(0, 3, static_cast<std::uint64_t>(type));
    put(3, kOpenedBits, opened);
    put(8, kSequenceBits, sequence);
  }

  constexpr std::uint64_t bits() const { return word_; }
  constexpr AbstractType type() const { return static_cast<AbstractType>(get(0, 3)); }
  constexpr std::uint32_t opened() const { return get(3, kOpenedBits); }
  constexpr std::uint32_t sequence() const { return get(8, kSequenceBits); }

  // Data, end and repair: of a flow. The half is 0 (reduce) or 1 (spread).
  constexpr AbstractWord& flow(int half, std::uint8_t attempt) {
    put(24, 1, static_cast<std::uint64_t>(half));
    put(25, 8, attempt);
    return *this;
  }
  constexpr int half() const { return static_cast<int>(get(24, 1)); }
  constexpr std::uint8_t attempt() const { return static_cast<std::uint8_t>(get(25, 8)); }

  // Data: which packet, whether it has the pass's last position, whether its sender wants nothing
  // more of this call.
  constexpr AbstractWord& packet(std::uint32_t index, bool last, bool settled) {
    put(33, 22, index);
    put(55, 1, last);
    put(56, 1, settled);
    return *this;
  }
  constexpr std::uint32_t index() const { return get(33, 22); }
  constexpr bool last() const { return get(55, 1) != 0; }
  constexpr bool settled() const { return get(56, 1) != 0; }

  // Report: what it saw of the link, and how its latest call stands.
  struct Report {
    std::uint32_t largest_sequence = 0;
    std::uint32_t received = 0;
    bool half_settled[2] = {};  // what you send me
    bool closed = false;        // the latest call: I neither want nor send anything more
    bool lingers = false;       // there is something earlier of mine that you have not confirmed
    bool prompt = false;        // the datagram named arrived this instant: a round trip is measured
  };
  constexpr AbstractWord& report(const Report& report) {
    put(24, kSequenceBits, report.largest_sequence);
    put(40, kSequenceBits, report.received);
    put(56, 1, report.half_settled[0]);
    put(57, 1, report.half_settled[1]);
    put(58, 1, report.closed);
    put(59, 1, report.lingers);
    put(60, 1, report.prompt);
    return *this;
  }
  constexpr Report report() const {
    return {.largest_sequence = get(24, kSequenceBits),
            .received = get(40, kSequenceBits),
            .half_settled = {get(56, 1) != 0, get(57, 1) != 0},
            .closed = get(58, 1) != 0,
            .lingers = get(59, 1) != 0,
            .prompt = get(60, 1) != 0};
  }

 private:
  constexpr void put(int at, int bits, std::uint64_t value) {
    word_ |= (value & ((std::uint64_t{1} << bits) - 1)) << at;
  }
  constexpr std::uint32_t get(int at, int bits) const {
    return static_cast<std::uint32_t>(word_ >> at & ((std::uint64_t{1} << bits) - 1));
  }

  std::uint64_t word_ = 0;
};

}  // namespace leeway::sim
