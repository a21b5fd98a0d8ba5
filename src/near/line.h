// What a rank tells the others of its host: one page of the arena, which it alone writes. Whatever
// is read of a peer's page may be anything: it is copied out before it is checked.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "leeway/types.h"

namespace leeway::near {

using Word = std::atomic<std::uint64_t>;
using ShortWord = std::atomic<std::uint32_t>;
static_assert(Word::is_always_lock_free && ShortWord::is_always_lock_free);

// Pieces of memory from allocate() that a rank has at the same time.
inline constexpr std::size_t kRegionsMax = 64;

// A rank's word is remembered that so many of its latest calls went elsewhere.
inline constexpr std::size_t kElsewhereMax = 64;

// How far a rank has come, as one number that only grows: calls count from 1, and so do steps of a
// call. A rank that fails in a call stays where it is until all have left that call.
inline constexpr int kStepBits = 24;
inline constexpr std::uint64_t kStepsMax = (std::uint64_t{1} << kStepBits) - 1;
constexpr std::uint64_t progress_of(std::uint64_t call, std::uint64_t step) {
  return (call << kStepBits) | step;
}

// Why nothing more comes of a rank.
enum class Gone : std::uint32_t { no = 0, left, aborted };

// Why a rank gave a call up, and the rank with which that began.
struct Reason {
  std::uint8_t code = 0;  // a StatusCode
  Rank rank = kNoRank;

  constexpr std::uint64_t word() const { return std::uint64_t{code} | std::uint64_t{rank} << 8; }
  static constexpr Reason of(std::uint64_t word) {
    return {static_cast<std::uint8_t>(word), static_cast<Rank>(word >> 8)};
  }
};

// What a call is, for comparison, and where its tensors lie. Written before step 1; the last two of
// an allocation before step 2.
struct Descriptor {
  Word call;       // which one this is about
  Word what;       // kind, reduction, element type and root
  Word count;      // the elements that all ranks give alike
  Word condition;  // Condition
  Word first;      // slot of the first chunk; the next ones follow in turn
  Word from;       // number of the region that the input lies in; 0: in none
  Word from_at;    // its first byte there
  Word to;         // the same of the output; of an allocation 1: this rank maps all others'
  Word to_at;      // of an allocation its place in Line::regions
};

// What a rank alone knows of its call, and all must heed.
enum class Condition : std::uint64_t {
  ordinary = 0,
  apart,  // something is to be done here that only datagrams do; of an allocation: no memory
};

struct alignas(128) Line {
  // Together: one cache line is all that a waiting rank looks at.
  Word progress;
  Word begun;        // the last call to which this rank came after a failed one
  Word gave_up;      // the last call that failed here; 0: none
  Word why;          // why, as Reason::word(), written before `gave_up`
  ShortWord steps;   // changes with each word that others wait for: they sleep on it
  ShortWord asleep;  // 1 + the rank on whose `steps` this one sleeps; 0: awake
  ShortWord gone;    // Gone
  ShortWord freed;   // how many regions were given back
  // By turns: a rank that describes its next call may have peers in the one before.
  alignas(64) std::array<Descriptor, 2> descriptors;
  // Numbers of the regions that exist; 0: none in this place.
  alignas(64) std::array<Word, kRegionsMax> regions;
  // Numbers of calls that this rank gave to datagrams when it was asked for them, each in the place
  // of its number modulo kElsewhereMax. It never comes to them here.
  alignas(64) std::array<Word, kElsewhereMax> elsewhere;
};
inline constexpr std::size_t kLineBytes = 4096;
static_assert(sizeof(Line) <= kLineBytes);

}  // namespace leeway::near
