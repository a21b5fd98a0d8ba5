// One number that says whether two runs were the same: a 64-bit hash over everything that happened,
// in order. Each record is a time, a kind, an entity and any words that belong to it.
//
// Promises:
//   - Two traces that differ in exactly one word of one record have different hashes for certain,
//     since every step is a bijection of the state; any other difference goes unseen with
//     probability 2^-64. Order counts, and so does where a record ends.
//   - Equal on every machine. Golden values in tests/unit/sim_engine: changing the hash breaks
//     every recorded one.
//   - About a nanosecond a word. Not a defence against an adversary.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

#include "base/time.h"

namespace leeway::sim {

class TraceHash {
 public:
  // add(now, kind, entity, word, word, ...): words of any integer type, up to 64 bits.
  template <std::integral... Words>
  void add(Instant time, std::uint32_t kind, std::uint32_t entity, Words... words) {
    mix(static_cast<std::uint64_t>(time.ns));
    mix(std::uint64_t{kind} << 32 | entity);
    // The number of words comes first: no trace can then be read as another with other records.
    mix(sizeof...(words));
    (mix(static_cast<std::uint64_t>(words)), ...);
    ++records_;
  }

  // Adds the hash of a whole run. A sweep adds its runs in the order of the scenario, not in the
  // order in which they ended.
  void add_run(const TraceHash& run) { add_run(run.value()); }
  void add_run(std::uint64_t value) {
    mix(value);
    ++records_;
  }

  // May be called at any time; more may be added afterwards.
  std::uint64_t value() const { return finish(state_ ^ records_); }
  // Records and runs added.
  std::uint64_t records() const { return records_; }

 private:
  // MurmurHash3 (Appleby, public domain), x64: its body, one lane, and its finalizer.
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
