#include "protocol/path.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace leeway::protocol {
void RoundTrip::on_sample(Instant sent, Duration sample) {
  const std::int64_t rtt = std::max<std::int64_t>(sample.count(), 1);
  if (doubts(sent, rtt)) return;
  if (samples_++ == 0) {
    smoothed_ = rtt;
    variation_ = rtt / 2;
    return;
  }
  variation_ += (std::abs(smoothed_ - rtt) - variation_) / 4;
  smoothed_ += (rtt - smoothed_) / 8;
}

bool RoundTrip::doubts(Instant sent, std::int64_t rtt) {
  if (rtt <= smoothed_ + 8 * variation_ + limits::kPauseNs || samples_ == 0) {
    doubted_until_ = Instant::infinite_future();
    return false;
  }
  if (sent >= doubted_until_) return false;
  doubted_until_ = std::min(doubted_until_, sent + Duration(rtt));
  return true;
}

Duration RoundTrip::timeout(std::uint32_t tries) const {
  const std::int64_t base = smoothed_ + std::max<std::int64_t>(4 * variation_, limits::kTickNs);
  return Duration(
      std::min(base << std::min<std::uint32_t>(tries, 6), std::max(2 * base, limits::kBackOffNs)));
}

void Path::configure(std::uint32_t window_datagrams, Duration initial_rtt,
                     std::uint32_t peers_window, std::uint32_t window_most) {
  const std::uint32_t window = std::max<std::uint32_t>(window_datagrams, 2);
  ++communicators_;
  if (window_ != 0 && window_ <= window) return;
  if (window_ == 0) {
    initial_rtt_ = initial_rtt;
    rtt = RoundTrip(initial_rtt);
  }
  set_window(window, peers_window);
  // Control datagrams leave even if the window is full, so send times are kept for twice as many
  // datagrams as the window has. A later call only makes the window smaller, so it keeps the
  // memory.
  const std::size_t most = std::max(window_, window_most);
  if (!sent_at_.empty()) return;
  remembered_ = std::bit_ceil(2 * most);
  sent_at_.assign(std::min(remembered_, kRememberedFirst), Instant{0});
}

// Doubles the memory of send times. It starts small, because most of a large window is never used.
void Path::remember_more() {
  std::vector<Instant> more(2 * sent_at_.size(), Instant{0});
  for (std::size_t i = 1; i <= sent_at_.size(); ++i) {
    const auto sequence = next_sequence_ - static_cast<std::uint32_t>(i);
    more[sequence & (more.size() - 1)] = sent_at_[sequence & (sent_at_.size() - 1)];
  }
  sent_at_.swap(more);
}

void Path::set_window(std::uint32_t window, std::uint32_t peers_window) {
  window_ = window;
  memory_ = std::min(window, kMemoryMax);
  known_ = known_ == 0 ? std::min(memory_, kKnownFirst) : std::min(known_, memory_);
  open_ = std::min(window_, limit_);
  // A report is never due after every single datagram: reports are datagrams themselves, and two
  // sides would answer each other's reports for ever.
  const std::uint32_t reported = peers_window == 0 ? window_ : std::min(window_, peers_window);
  report_every_ = std::max<std::uint32_t>(reported / 4, 2);
}

void Path::widen(std::uint32_t window_datagrams, std::uint32_t peers_window) {
  const auto most = static_cast<std::uint32_t>(remembered_ / 2);
  if (communicators_ == 1 && window_datagrams > window_)
    set_window(std::min(window_datagrams, most), peers_window);
}

std::uint32_t Path::take_sequence(Instant now) {
  if (in_flight() >= sent_at_.size() && sent_at_.size() < remembered_) remember_more();
  sent_at_[next_sequence_ & (sent_at_.size() - 1)] = now;
  return next_sequence_++;
}

double Path::sent_in_round_trip(Instant now) const {
  // Limit of the extrapolation from `span` to a round trip: if the datagrams in flight left in one
  // train, `span` does not show the pace.
  constexpr double kStretchMax = 4.0;
  const auto some = static_cast<std::uint32_t>(std::min<std::size_t>(in_flight(), sent_at_.size()));
  if (some == 0) return 0.0;
  const Duration span = now - sent_at_[(next_sequence_ - some) & (sent_at_.size() - 1)];
  const double round_trips = static_cast<double>(rtt.smoothed().count()) /
                             static_cast<double>(std::max<Duration::rep>(span.count(), 1));
  return some * std::clamp(round_trips, 1.0 / kStretchMax, kStretchMax);
}

bool Path::on_report(Instant now, const PathReport& report) {
  const std::uint32_t largest = report.largest_sequence;
  if (!after(next_sequence_, largest)) return false;
  // The report has nothing new, or a later one overtook it.
  if (!after(largest, reported_.largest_sequence)) return true;
  const std::uint32_t covered = largest - reported_.largest_sequence;
  const std::uint32_t arrived = std::min(report.received - reported_.received, covered);
  // The estimates of losses move by `share`: they learn fast from the first reports, and their
  // error bounds are wide while datagrams are few. delivered_ moves slowly, by `sure`: it only
  // decides whether a path is lossy at all.
  const double share = static_cast<double>(covered) / (covered + known_);
  const double sure = static_cast<double>(covered) / (covered + memory_);
  known_ = std::min(known_ + covered, memory_);
  delivered_ += sure * (static_cast<double>(arrived) / covered - delivered_);
  const auto missing = static_cast<std::int32_t>(covered - (report.received - reported_.received));
  missing_ += share * (static_cast<double>(missing) / covered - missing_);
  bursts_.note(covered, missing, missing_);
  below_peak_ = std::max((1.0 - share) * below_peak_ - missing, 0.0);
  overtaken_ = std::max((1.0 - share) * overtaken_, below_peak_);
  const CoveredArrivals arrivals{largest, report.received - reported_.received,
                                 report.received_bytes - reported_.received_bytes};
  reported_ = report;
  if (next_sequence_ - largest <= sent_at_.size()) {
    const Instant sent = sent_at_[largest & (sent_at_.size() - 1)];
    rtt.on_sample(sent, now - sent - report.delay);
    size.begin(now);
  }
  size.on_report(now, arrivals, rtt.smoothed());
  return true;
}

bool Path::on_alive(Instant now, std::uint32_t answered) {
  if (!after(next_sequence_, answered)) return false;
  on_life(now);
  return true;
}

void Path::on_arrival(Instant now, std::uint32_t sequence, std::size_t bytes) {
  ++received_;
  received_bytes_ += static_cast<std::uint32_t>(bytes);
  if (largest_seen_ != 0 && !after(sequence, largest_seen_)) return;
  largest_seen_ = sequence;
  largest_at_ = now;
}

}  // namespace leeway::protocol
