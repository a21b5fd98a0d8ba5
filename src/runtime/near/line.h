// One page of the arena, in which a rank tells the others of its host how far it has come. Only
// that rank writes it. A peer may write anything into its page at any time, so a reader copies a
// word before checking it.
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

// A rank has at most this many pieces of memory from allocate() at the same time.
inline constexpr std::size_t kRegionsMax = 64;

// A rank lists its latest calls that went by datagrams, at most this many.
inline constexpr std::size_t kElsewhereMax = 64;

// Progress of a rank, as one number that only grows. Calls are numbered from 1, and so are a call's
// steps. If a rank fails in a call, its progress stays as it is until all ranks have left that
// call.
inline constexpr int kStepBits = 24;
inline constexpr std::uint64_t kStepsMax = (std::uint64_t{1} << kStepBits) - 1;
constexpr std::uint64_t progress_of(std::uint64_t call, std::uint64_t step) {
  return (call << kStepBits) | step;
}

// Why a rank does nothing more.
enum class Gone : std::uint32_t { no = 0, left, aborted };

// Why a rank gave up a call, and the rank at which the failure began.
struct Reason {
  std::uint8_t code = 0;  // a StatusCode
  Rank rank = kNoRank;

  constexpr std::uint64_t word() const { return std::uint64_t{code} | std::uint64_t{rank} << 8; }
  static constexpr Reason of(std::uint64_t word) {
    return {static_cast<std::uint8_t>(word), static_cast<Rank>(word >> 8)};
  }
};

// A rank's description of a call, for comparison, and the places of its tensors. A rank writes it
// before it posts step 1. In an allocation it writes the last two words (`to`, `to_at`) before it
// posts step 2.
struct Descriptor {
  Word call;       // number of the described call
  Word what;       // kind, reduction, element type and root
  Word count;      // agreed_count(): the elements that all ranks give alike; bytes of an allocation
  Word condition;  // Condition
  Word first;      // slot of the first chunk; the next chunks follow in the next slots
  Word from;       // number of the region that holds the input, or 0 if none does
  Word from_at;    // first byte of the input in that region
  Word to;     // as `from`, for the output; in an allocation 1 if this rank maps all others' memory
  Word to_at;  // as `from_at`, for the output; in an allocation the region's place in Line::regions
};

// How a call must be made for a reason that only this rank knows. If one rank says `apart`, all
// ranks act on it.
enum class Condition : std::uint64_t {
  ordinary = 0,
  apart,  // only datagrams can do the call as this rank made it; in an allocation: no memory
};

struct alignas(128) Line {
  // The words that a waiting rank reads lie together, so that it reads only one cache line.
  Word progress;
  Word begun;        // the last call that this rank began after it had failed in one
  Word gave_up;      // the last call that failed here, or 0
  Word why;          // the reason, as Reason::word(), written before `gave_up`
  ShortWord steps;   // changes with each word that others wait for, so that they can sleep on it
  ShortWord asleep;  // 1 + the rank on whose `steps` this one sleeps, or 0 while awake
  ShortWord gone;    // Gone
  ShortWord freed;   // number of regions that were given back
  // The two descriptors are used in turn, because peers may still be in a call when a rank
  // describes its next one.
  alignas(64) std::array<Descriptor, 2> descriptors;
  // Numbers of the regions that exist, or 0 for a free place.
  alignas(64) std::array<Word, kRegionsMax> regions;
  // Numbers of the latest calls that this rank made by datagrams. A number stands at the index that
  // is the number modulo kElsewhereMax. This rank never comes to these calls in the arena.
  alignas(64) std::array<Word, kElsewhereMax> elsewhere;
};
inline constexpr std::size_t kLineBytes = 4096;
static_assert(sizeof(Line) <= kLineBytes);

}  // namespace leeway::near
