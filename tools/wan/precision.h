// Measures how precisely the laboratory keeps time. It shares a machine with other work, so it must
// report when it could not keep up with the clock.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace leeway::lab {

// A histogram of times in ns. Its bins are a quarter of a power of two wide.
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
  // Returns the upper end of the bin below which this share of the times lies, or 0 without times.
  std::int64_t quantile_ns(double share) const;
  // Returns the number of times in bins that begin at `ns` or later.
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

// A packet that is read or delivered later than this counts as late. A shorter delay hardly
// matters, because timers of TCP and Leeway have a resolution of 1 ms.
inline constexpr std::int64_t kLateNs = 1'000'000;
// With a larger share of late packets, measurements show the machine and not the network.
inline constexpr double kLateShareMax = 0.01;

struct Precision {
  double seconds = 0;
  // Longest time that a packet may have waited in its device: the time since the device was seen
  // empty. It is 0 while the rank's line is busy, because the packet would not have left the line
  // earlier.
  TimeHistogram intake;
  TimeHistogram late;  // how long after its time a packet was delivered
  // Time between two passes over all devices, while packets come.
  TimeHistogram pass;
  double processor_s = 0;        // processor time of the laboratory's thread
  double waited_s = 0;           // time for which it could run, but other work had the cores
  bool ahead_of_others = false;  // it ran with a real-time priority
  // Packets that the devices dropped because the laboratory did not read them in time.
  std::uint64_t device_drops = 0;

  // Returns the larger of two shares: late packets among those read, and among those delivered.
  double late_share() const;
  // Returns false if the laboratory was too slow, so that figures measured with it are not the
  // network's.
  bool kept_up() const { return late_share() <= kLateShareMax && device_drops == 0; }
};

}  // namespace leeway::lab
