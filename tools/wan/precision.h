// Measures how well the laboratory keeps its own time. It follows a real clock on a machine that
// has other work, and must report if it could not.
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
  // Returns the upper end of the class below which this share of the times lies, or 0 if there are
  // no times.
  std::int64_t quantile_ns(double share) const;
  // Number of times in classes that begin at `ns` or later.
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

// A packet that came in or went out this long after its time is late. Timers of TCP and Leeway have
// a resolution of a millisecond.
inline constexpr std::int64_t kLateNs = 1'000'000;
// If a larger share of packets is late, a measurement tells about this machine and not about the
// network.
inline constexpr double kLateShareMax = 0.01;

struct Precision {
  double seconds = 0;
  // How long a packet may have waited in its device: since the device was empty. 0 if the line was
  // busy, because a packet that had come earlier would have left at the same time.
  TimeHistogram intake;
  TimeHistogram late;  // how long after its time a packet was delivered
  // Time from one look at all devices to the next, while packets come.
  TimeHistogram pass;
  double processor_s = 0;        // processor time of the laboratory's thread
  double waited_s = 0;           // time for which it could run, but other work had the cores
  bool ahead_of_others = false;  // it ran with a real-time priority
  // Packets that its own devices lost, because it did not take them in time.
  std::uint64_t device_drops = 0;

  // Share of late packets, among those that came in or those that went out, whichever is more.
  double late_share() const;
  // Returns false if the laboratory fell behind its own clock, so that figures measured with it are
  // not the network's.
  bool kept_up() const { return late_share() <= kLateShareMax && device_drops == 0; }
};

}  // namespace leeway::lab
