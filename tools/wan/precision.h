// How well the laboratory keeps its own time: it follows a real clock on a machine that has other
// work, and must say when it could not.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace leeway::lab {

// Counts of times in ns, in classes a quarter of a power of two wide.
class TimeHistogram {
 public:
  void add(std::int64_t ns) {
    const auto value = static_cast<std::uint64_t>(ns < 0 ? 0 : ns);
    ++counts_[class_of(value)];
    ++total_;
    if (ns > max_ns_) max_ns_ = ns;
  }
  std::uint64_t total() const { return total_; }
  std::int64_t max_ns() const { return max_ns_; }
  // The upper end of the class in which this share of the times lies; 0 of none.
  std::int64_t quantile_ns(double share) const;
  // How many lie in classes that begin at `ns` or later.
  std::uint64_t count_from(std::int64_t ns) const;

 private:
  static constexpr std::size_t kParts = 4;
  static constexpr std::size_t kClasses = 64 * kParts;

  static std::size_t class_of(std::uint64_t value) {
    if (value < kParts) return static_cast<std::size_t>(value);
    const auto power = static_cast<std::size_t>(std::bit_width(value) - 1);
    return (power - 1) * kParts + (value >> (power - 2)) % kParts;
  }
  static std::uint64_t begin_of(std::size_t number);

  std::array<std::uint64_t, kClasses> counts_{};
  std::uint64_t total_ = 0;
  std::int64_t max_ns_ = 0;
};

// A packet that came in or went out so much after its time is late. TCP's timers and Leeway's have
// a grain of a millisecond.
inline constexpr std::int64_t kLateNs = 1'000'000;
// More late packets than this share, and a measurement is one of this machine, not of the network.
inline constexpr double kLateShareMax = 0.01;

struct Precision {
  double seconds = 0;
  // May have waited so long in its device: since that was empty. 0 if the line was busy: a packet
  // that had come earlier would have left at the same time.
  TimeHistogram intake;
  TimeHistogram late;              // delivered so much after its time
  TimeHistogram pass;              // from one look at all devices to the next, while packets come
  double processor_s = 0;          // of the laboratory's thread
  double waited_s = 0;             // it could run, but other work had the cores
  bool ahead_of_others = false;    // it ran with a real-time priority
  std::uint64_t device_drops = 0;  // packets that its own devices lost, because it did not come

  // Of packets that came in late, or of those that went out late, whichever is more.
  double late_share() const;
  // False: it fell behind its own clock, and figures measured with it are not the network's.
  bool kept_up() const { return late_share() <= kLateShareMax && device_drops == 0; }
};

}  // namespace leeway::lab
