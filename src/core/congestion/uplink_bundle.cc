#include "congestion/uplink_bundle.h"

#include <utility>

namespace leeway::congestion {
namespace {

// A batch takes a quarter of a millisecond: short compared with any queue that matters, and long
// enough for segmentation offload on a fast link.
constexpr double kQuantumSeconds = 0.25e-3;
constexpr double kQuantumMin = 2 * kPacketBytes;
constexpr std::size_t kQuantumMax = std::size_t{64} * 1024;
// A host that wakes late may make up for lost time, because a busy host sleeps longer than a batch
// takes. It may make up for half a quantum's time, or on a long path for 1 / kCatchUpPart of the
// round trip (half of the queue that `wan` allows). The limit is 0.5 ms, since with 1 ms shallow
// queues overflowed. Four ranks on two cores (tools/wan_lab, 500 Mb/s, 20 ms, exact 4 MiB) took 165
// ms a call with half a quantum only, and 216 ms at 10 % loss. With a limit of 0.6 ms they took 151
// ms and 192 ms.
constexpr int kCatchUpPart = 32;
constexpr Duration kCatchUpMost = std::chrono::microseconds(500);
// Least time without an answer that counts as silence. A shorter pause may only mean that the
// peer's host is busy.
constexpr Duration kPatienceLeast = std::chrono::milliseconds(3);
constexpr double kTrustMin = 1.0 / 1024;
// While a peer is silent, two packets a second may still leave, so that its return is noticed soon.
constexpr double kSilentRate = 2 * 8 * kPacketBytes;
// A peer is near if its round trip is less than kNear, and less than 1 / kNearer of another peer's.
// The path to a near peer does not pass the bottleneck for which the controller is made.
constexpr Duration kNear = std::chrono::milliseconds(2);
constexpr int kNearer = 8;
// Limit on the bytes in flight to a near peer. They are not paced, so all of them may wait in the
// peer's socket.
constexpr std::uint64_t kNearWindowBytes = 1 << 20;
// Losses to a near peer are judged every kNearJudged datagrams. If more than one in kNearLostPart
// are lost, the unpaced data overflows a queue. Data for far peers may have to pass that queue,
// too.
constexpr std::uint32_t kNearJudged = 256;
constexpr std::uint32_t kNearLostPart = 4;
constexpr Duration kFirstReportWithin = std::chrono::seconds(1);
// If more datagrams than this arrived without ECT (the mark of ECN's senders), the network erases
// marks. A few are allowed, because datagrams that waited at the peer for their communicator are
// not counted as ECT.
constexpr std::uint32_t kUnmarkableMax = 16;

// Returns the signed difference of two counts modulo 2^24.
std::int32_t difference_24(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>((a - b) << 8) >> 8;
}

}  // namespace

UplinkBundle::UplinkBundle(std::unique_ptr<Controller> controller)
    : controller_(std::move(controller)), questions_(controller_->questions()) {
  take_pace();
}

void UplinkBundle::make_link(std::size_t link, std::size_t datagrams) {
  if (link >= links_.size()) links_.resize(link + 1);
  links_made_ += links_[link].log.room() == 0;
  links_[link].log.make_room(datagrams);
}

Pace UplinkBundle::pace() const {
  Pace pace = pace_;
  const double least = std::min(kSilentRate, pace.bits_per_second);
  pace.bits_per_second = std::max(pace.bits_per_second * trust_, least);
  return pace;
}

void UplinkBundle::take_pace() {
  pace_ = controller_->pace();
  if (pace_.quantum_bytes != 0) {
    quantum_bytes_ = std::min<std::size_t>(pace_.quantum_bytes, kQuantumMax);
    return;
  }
  const double quantum = pace().bits_per_second / 8 * kQuantumSeconds;
  quantum_bytes_ = static_cast<std::size_t>(std::clamp<double>(quantum, kQuantumMin, kQuantumMax));
}

// A path may make up for part of its round trip only once the round trip is known. It never may if
// the controller sets the quantum, since such a controller is for short paths.
Duration UplinkBundle::catch_up() const {
  const Duration train = quantum_time() / 2;
  if (pace_.quantum_bytes != 0 || nearest_ == Duration::max()) return train;
  return std::max(train, std::min(rtt_ / kCatchUpPart, kCatchUpMost));
}

void UplinkBundle::spend(Instant now, std::size_t bytes) {
  free_at_ = std::max(free_at_, now - catch_up()) + time_of(bytes);
}

void UplinkBundle::on_sent(Instant now, std::size_t link, const Sent& sent, double share) {
  const bool near = links_[link].near;
  if (links_[link].log.empty()) links_[link].first_sent_at = now;
  if (in_flight_ == 0) delivered_at_ = now;
  if (!near) sent_ += sent.total_bytes;
  if (share < 1) note_limited();
  Departure departure{.at = now,
                      .sent = sent_,
                      .covered = covered_,
                      .delivered = delivered_,
                      .delivered_at = delivered_at_,
                      .phase = pace_.phase,
                      .limited = delivered_ < limited_until_};
  LinkLog& log = links_[link].log;
  links_[link].sent_at = now;
  links_[link].datagram_bytes = std::max(links_[link].datagram_bytes, sent.segment_bytes);
  std::size_t left = sent.total_bytes;
  for (std::uint32_t i = sent.datagrams; i-- > 0;) {
    const std::size_t bytes = i == 0 ? left : sent.segment_bytes;
    log.on_sent(sent.last - i, departure, static_cast<std::uint32_t>(bytes),
                sent.last - i - links_[link].largest);
    left -= bytes;
  }
  if (near) return;
  in_flight_ += sent.total_bytes;
  spend(now, static_cast<std::size_t>(static_cast<double>(sent.total_bytes) / share));
}

bool UplinkBundle::asks(Instant now, std::size_t link) const {
  const Link& at = links_[link];
  if (!at.asked || now - at.asked_at >= std::max(questions_.least, rtt_ / 4)) return true;
  if (questions_.by_share && 2 * links_made_ * at.log.under_way() >= pace_.in_flight_bytes)
    return true;
  return in_flight_ + quantum_bytes_ >= pace_.in_flight_bytes;
}

void UplinkBundle::on_asked(Instant now, std::size_t link) {
  links_[link].asked = true;
  links_[link].asked_at = now;
  if (!links_[link].near && asks_++ == 0) heard_at_ = now;
}

bool UplinkBundle::all_far() const {
  return nearest_ >= kNear && nearest_ != Duration::max();
}

std::uint32_t UplinkBundle::datagrams_granted(std::size_t link) const {
  const Link& at = links_[link];
  std::uint64_t bytes = at.governor.window_bytes();
  if (at.near) bytes = std::min(bytes, kNearWindowBytes);
  if (at.grant != UINT32_MAX) bytes = std::min<std::uint64_t>(bytes, at.grant);
  if (bytes == UINT64_MAX) return UINT32_MAX;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes / at.datagram_bytes, UINT32_MAX));
}

// Writes off what is in flight on links that have sent nothing for a while. Where there are many
// links, some of them lose their last question, so no report covers their last datagrams. Without
// this those datagrams would fill the window for ever.
void UplinkBundle::write_off_stale(Instant now) {
  for (Link& link : links_) {
    if (link.near || link.log.under_way() == 0 || now - link.sent_at < stuck_for()) continue;
    in_flight_ -= std::min(in_flight_, link.log.under_way());
    link.log.write_off();
  }
}

// Measures the uplink's rate between two datagrams of this link that left about a round trip apart.
// The bytes are what left to all peers between the two, times the share of covered bytes that
// arrived lately. This share is taken of the link or of all links, whichever is less. The time is
// that between the two departures, or between the two arrivals if that is longer. A rate from the
// sum of all links' reports would mislead: the sum grows in steps, and the maximum of such samples
// was 13 % above the path's rate.
void UplinkBundle::measure_rate(Link& at, const Departure& departure, const Arrivals& arrivals,
                                Sample& sample) {
  const auto mark = [&at](std::size_t i) -> const Mark& {
    return at.marks[(at.marks_made - i) % at.marks.size()];
  };
  const std::size_t marks = std::min(at.marks.size(), at.marks_made);
  std::size_t i = 1;
  while (i <= marks && departure.at - mark(i).departure.at < rtt_ * 3 / 4) ++i;
  const std::uint64_t delivered = delivered_ - departure.delivered;
  const std::uint64_t covered = covered_ - departure.covered;
  if (i <= marks && covered > 0) {
    const Mark& from = mark(i);
    const std::int32_t apart_us = difference_24(arrivals.arrived_us, from.arrived_us);
    const double of_all = static_cast<double>(delivered) / static_cast<double>(covered);
    const double of_link = static_cast<double>(arrivals.received_bytes - from.received_bytes) /
                           static_cast<double>(departure.bytes - from.departure.bytes);
    sample.interval =
        std::max<Duration>(departure.at - from.departure.at, std::chrono::microseconds(apart_us));
    sample.delivered_bytes =
        static_cast<std::uint64_t>(std::min({1.0, of_all, of_link}) *
                                   static_cast<double>(departure.sent - from.departure.sent));
  } else if (at.marks_made < at.marks.size()) {
    sample.interval = sample.now - departure.delivered_at;
    sample.delivered_bytes = delivered;
  }
  if (marks == 0 || departure.at - mark(1).departure.at >= rtt_ / 8) {
    at.marks[at.marks_made++ % at.marks.size()] = {departure, arrivals.arrived_us,
                                                   arrivals.received_bytes};
  }
}

void UplinkBundle::judge_nearness(Link& at) {
  const auto far = [&](const Link& link) {
    return link.rtt.known() && link.rtt.value() > kNearer * at.rtt.value();
  };
  nearest_ = std::min(nearest_, Duration(at.rtt.value()));
  if (!controller_->spares_near() || at.lossy || at.rtt.value() >= kNear.count()) return;
  if (std::none_of(links_.begin(), links_.end(), far)) return;
  at.near = true;
  in_flight_ -= std::min(in_flight_, at.log.under_way());
  at.log.write_off();
}

// Decides whether data to a near peer must be paced after all. If the uplink has a short queue,
// most of an unpaced burst is lost, and with it paced data. Drops by the peer's full socket do not
// count, since the network did not lose these datagrams.
void UplinkBundle::judge_losses(Link& at, std::uint32_t covered, std::uint32_t received,
                                std::uint16_t host_drops) {
  const std::uint64_t arrived = std::uint64_t{received} + host_drops;
  at.near_covered += covered;
  at.near_lost += covered - static_cast<std::uint32_t>(std::min<std::uint64_t>(covered, arrived));
  if (at.near_covered < kNearJudged) return;
  at.lossy = at.near_lost > at.near_covered / kNearLostPart;
  at.near = !at.lossy;
  at.near_covered = at.near_lost = 0;
}

// Returns true if a link that has sent data still waits for its first report. Near peers answer
// first, and their reports say nothing about the path to far peers.
bool UplinkBundle::awaits_first_report(Instant now) const {
  if (!controller_->spares_near()) return false;
  return std::any_of(links_.begin(), links_.end(), [now](const Link& link) {
    return !link.log.empty() && !link.rtt.known() && now - link.first_sent_at < kFirstReportWithin;
  });
}

// Returns the delay in the uplink's queue. It is the least queueing of all links, since the
// uplink's queue delays all links. Further delay on a link is at the link's peer, where other
// senders' bursts meet. Links with less than half of the round trip of `at` are left out, because
// they may not pass the bottleneck.
Duration UplinkBundle::queueing(Instant now, const Link& at) const {
  Duration least = at.queueing;
  // Controllers for short round trips ask by share. In a short round trip only few links report, so
  // reports of three round trips count.
  const Duration recent = questions_.by_share ? 3 * rtt_ : rtt_;
  for (const Link& link : links_) {
    if (now - link.reported_at > recent || link.near || link.rtt.value() < at.rtt.value() / 2)
      continue;
    least = std::min(least, link.queueing);
  }
  return least;
}

// Returns the least jitter of all links, because a queue at one peer changes delays of its link
// only.
Duration UplinkBundle::jitter() const {
  Duration least = Duration::max();
  for (const Link& link : links_) {
    if (!link.near && link.jitter.known()) least = std::min(least, link.jitter.deviation());
  }
  return least == Duration::max() ? Duration(0) : least;
}

void UplinkBundle::begin_anew(Instant now, std::size_t link) {
  if (link >= links_.size()) return;
  Link& at = links_[link];
  if (!at.near) in_flight_ -= std::min(in_flight_, at.log.under_way());
  at.log.write_off();
  at.marks_made = 0;
  at.rtt = {};
  at.one_way = {};
  at.one_way_us.reset();
  at.jitter = {};
  at.queueing = Duration(0);
  at.first_sent_at = now;
  at.near = at.lossy = false;
  at.near_covered = at.near_lost = 0;
  at.asked = false;
  at.unmarkable = 0;
}

// Gives the link's governor the length of the queue at the peer, to which all ranks send. This is
// the link's queueing minus the uplink's queueing, which every link shows.
void UplinkBundle::govern(Link& at, const Sample& sample) const {
  at.governor.on_report(sample, at.queueing - sample.queueing, controller_->noise(),
                        std::max<std::size_t>(links_made_, 1));
}

// Returns the number of new ECN marks (WIRE 3.15). They are believed only while the counts of
// marked and unmarked datagrams agree with the number that arrived (RFC 9000 13.4.2).
std::uint32_t UplinkBundle::take_marks(Link& at, const Arrivals& arrivals,
                                       std::uint32_t received) const {
  const std::uint32_t unmarked = arrivals.ect - at.ect;
  const std::uint32_t marked = arrivals.ce - at.ce;
  at.ect = arrivals.ect;
  at.ce = arrivals.ce;
  if (at.unmarkable > kUnmarkableMax) return 0;
  const std::uint64_t told = std::uint64_t{unmarked} + marked;
  at.unmarkable = told > received ? kUnmarkableMax + 1
                                  : at.unmarkable + static_cast<std::uint32_t>(received - told);
  return at.unmarkable > kUnmarkableMax ? 0 : marked;
}

// Returns how many more datagrams the peer's socket dropped (WIRE 3.16). No more drops are believed
// than there are datagrams that did not arrive.
std::uint64_t UplinkBundle::take_host_drops(Link& at, const Arrivals& arrivals) const {
  const auto more = static_cast<std::uint16_t>(arrivals.host_drops - at.host_drops);
  at.host_drops = arrivals.host_drops;
  at.grant = arrivals.grant;
  const std::uint64_t missing = at.covered - at.counted;
  const std::uint64_t believed =
      std::min<std::uint64_t>(more, missing - std::min(missing, at.host_dropped));
  at.host_dropped += believed;
  return believed;
}

void UplinkBundle::on_report(Instant now, std::size_t link, const Arrivals& arrivals) {
  Link& at = links_[link];
  const std::uint32_t covered = arrivals.largest - at.largest;
  const std::uint32_t received_more = arrivals.received - at.received;
  const std::uint32_t bytes_more = arrivals.received_bytes - at.received_bytes;
  at.largest = arrivals.largest;
  at.received = arrivals.received;
  at.received_bytes = arrivals.received_bytes;
  const std::uint32_t marked = take_marks(at, arrivals, received_more);
  if (at.near) {
    at.log.write_off();
    const auto host_drops = static_cast<std::uint16_t>(arrivals.host_drops - at.host_drops);
    at.host_drops = arrivals.host_drops;
    judge_losses(at, covered, received_more, host_drops);
    return;
  }
  asks_ = 0;
  heard_at_ = now;
  held_back_ = false;
  if (trust_ < 1) free_at_ = std::min(free_at_, now);  // silence had put off the next batch
  trust_ = 1;
  const Departure* const departure = at.log.find(arrivals.largest);
  if (departure == nullptr) return take_pace();

  // Arrivals are bounded by what was sent, so a peer that reports more does not seem faster.
  at.covered += covered;
  const std::uint64_t received = std::min<std::uint64_t>(received_more, at.covered - at.counted);
  at.counted += received;
  const std::uint64_t host_drops = take_host_drops(at, arrivals);
  const std::int64_t lost = at.late.lost(static_cast<std::int64_t>(at.covered - at.counted));
  const std::uint64_t bytes =
      std::min<std::uint64_t>(bytes_more, departure->bytes - at.counted_bytes);
  at.counted_bytes += bytes;
  const std::uint64_t newly_covered = at.log.cover(*departure);
  in_flight_ -= std::min(in_flight_, newly_covered);
  covered_ += newly_covered;
  delivered_ += bytes;
  delivered_at_ = now;

  Sample sample{.now = now};
  sample.rtt = std::max(now - departure->at - arrivals.held_back, Duration(1));
  at.rtt.add(now, sample.rtt.count());
  judge_nearness(at);
  if (at.near || awaits_first_report(now)) return take_pace();
  if (questions_.by_share && sample.rtt < rtt_ / 8)
    rtt_ = sample.rtt;  // the assumed round trip is far off
  rtt_ += (sample.rtt - rtt_) / 8;
  sample.rtt_min = Duration(at.rtt.value());
  // The two clocks differ by an unknown constant. The one-way delay and its minimum both contain
  // the constant, so it cancels in `queueing`.
  const auto left_us = static_cast<std::uint32_t>(departure->at.ns / 1000);
  const std::uint32_t raw_us = arrivals.arrived_us - left_us;
  if (!at.one_way_us) at.one_way_us = raw_us;
  const std::int64_t one_way_ns = std::int64_t{difference_24(raw_us, *at.one_way_us)} * 1000;
  at.one_way.add(now, one_way_ns);
  at.queueing = Duration(one_way_ns - at.one_way.value());
  at.jitter.add(one_way_ns);
  at.reported_at = now;
  sample.queueing = queueing(now, at);
  sample.jitter = jitter();
  measure_rate(at, *departure, arrivals, sample);
  sample.newly_delivered_bytes = bytes;
  sample.covered = covered;
  sample.lost = static_cast<std::int32_t>(lost) - static_cast<std::int32_t>(host_drops);
  sample.marked = marked;
  if (questions_.by_share) write_off_stale(now);
  const Departure* const oldest = at.log.find(arrivals.largest - covered + 1);
  sample.phase =
      oldest != nullptr && oldest->phase == departure->phase ? departure->phase : kNoPhase;
  sample.limited = departure->limited;
  if (controller_->governs_links()) govern(at, sample);
  controller_->on_sample(sample);
  take_pace();
}

// Returns how long peers may leave questions unanswered before this counts as silence.
Duration UplinkBundle::patience() const {
  return std::max(stuck_for(), kPatienceLeast);
}

void UplinkBundle::on_wake(Instant now) {
  if (open(now)) held_back_ = false;
  const bool silent = asks_ >= kAsksMax && now - heard_at_ >= patience();
  const bool stuck = is_stuck() && now - std::max(heard_at_, written_off_at_) >= stuck_for();
  if (!silent && !stuck) return;
  if (silent) trust_ = std::max(trust_ / 2, kTrustMin);
  if (silent || asks_ < kAsksMax) heard_at_ = now;
  written_off_at_ = now;
  for (Link& link : links_) link.log.write_off();
  in_flight_ = 0;
  held_back_ = false;
  take_pace();
}

Instant UplinkBundle::next_wake() const {
  const Instant at = watch_at();
  return held_back_ ? std::min(at, opens_at()) : at;
}

Instant UplinkBundle::watch_at() const {
  Instant at = Instant::infinite_future();
  if (asks_ >= kAsksMax) at = std::min(at, heard_at_ + patience());
  if (is_stuck()) at = std::min(at, std::max(heard_at_, written_off_at_) + stuck_for());
  return at;
}

}  // namespace leeway::congestion
