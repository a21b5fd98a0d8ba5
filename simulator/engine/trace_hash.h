// A 64-bit hash over everything that happened in a run, in order. Equal hashes show that two runs
// were the same. A record is a time, a kind, an entity and any number of words.
//
// Promises:
//   - Traces that differ in exactly one word have different hashes, because every step is a
//     bijection of the state. Any other difference, also in the order or length of records, goes
//     unseen with probability 2^-64.
//   - Equal on every machine. tests/unit/sim_engine has golden values; changing the hash breaks
//     every recorded hash.
//   - Costs about a nanosecond a word. Not secure against an adversary.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

#include "base/time.h"

namespace leeway::sim {

class TraceHash {
 public:
  // add(now, kind, entity, word, word, ...) adds a record. Words are integers of up to 64 bits.
  template <std::integral... Words>
  void add(Instant time, std::uint32_t kind, std::uint32_t entity, Words... words) {
    mix(static_cast<std::uint64_t>(time.ns));
    mix(std::uint64_t{kind} << 32 | entity);
    // The number of words comes first, so that no two lists of records give the same sequence of
    // words.
    mix(sizeof...(words));
    (mix(static_cast<std::uint64_t>(words)), ...);
    ++records_;
  }

  // Adds the hash of a whole run. A sweep adds its runs in the scenario's order, whichever ended
  // first.
  void add_run(const TraceHash& run) { add_run(run.value()); }
  void add_run(std::uint64_t value) {
    mix(value);
    ++records_;
  }

  // Returns the hash of what was added so far. More may be added afterwards.
  std::uint64_t value() const { return finish(state_ ^ records_); }
  // Number of records and runs that were added.
  std::uint64_t records() const { return records_; }

 private:
  // One step of MurmurHash3 (Appleby, public domain), x64 variant, with one of its two lanes.
  void mix(std::uint64_t word) {
    word = std::rotl(word * 0x87c37b91114253d5, 31) * 0x4cf5ad432745937f;
    state_ = std::rotl(state_ ^ word, 27) * 5 + 0x52dce729;
  }
  static std::uint64_t finish(std::uint64_t h) {
    h = (h ^ h >> 33) * 0xff51afd7ed558ccd;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53;
    return h ^ h >> 33;
  }

  std::uint64_t state_ = 0;
  std::uint64_t records_ = 0;
};

}  // namespace leeway::sim
