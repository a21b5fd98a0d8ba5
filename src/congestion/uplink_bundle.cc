#include "congestion/uplink_bundle.h"

#include <utility>

namespace leeway::congestion {
namespace {

// Trains of a quarter of a millisecond: short beside any queue worth the name, long enough for
// segmentation offload on a fast line.
constexpr double kQuantumSeconds = 0.25e-3;
constexpr double kQuantumMin = 2 * kPacketBytes;
constexpr double kQuantumMax = 64 * 1024;
// A host that wakes late by half a quantum catches up.
constexpr double kCatchUp = 0.5;
constexpr Duration kAskMin = std::chrono::milliseconds(1);
constexpr double kTrustMin = 1.0 / 1024;
// Also without an answer two packets a second may ask: who is heard again is found out at once.
constexpr double kSilentRate = 2 * 8 * kPacketBytes;

}  // namespace

UplinkBundle::UplinkBundle(std::unique_ptr<Controller> controller)
    : controller_(std::move(controller)) {
  take_pace();
}

void UplinkBundle::make_link(std::size_t link, std::size_t datagrams) {
  if (link >= links_.size()) links_.resize(link + 1);
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
  const double quantum = pace().bits_per_second / 8 * kQuantumSeconds;
  quantum_bytes_ = static_cast<std::size_t>(std::clamp(quantum, kQuantumMin, kQuantumMax));
}

void UplinkBundle::spend(Instant now, std::size_t bytes) {
  const double ns_per_byte = 8e9 / pace().bits_per_second;
  const Duration behind(
      static_cast<std::int64_t>(kCatchUp * static_cast<double>(quantum_bytes_) * ns_per_byte));
  free_at_ = std::max(free_at_, now - behind) +
             Duration(static_cast<std::int64_t>(static_cast<double>(bytes) * ns_per_byte));
}

void UplinkBundle::on_sent(Instant now, std::size_t link, const Sent& sent) {
  if (in_flight_ == 0) delivered_at_ = delivered_left_ = now;
  Departure departure{.at = now,
                      .delivered = delivered_,
                      .delivered_at = delivered_at_,
                      .delivered_left = delivered_left_,
                      .phase = pace_.phase,
                      .limited = delivered_ < limited_until_};
  LinkLog& log = links_[link].log;
  std::size_t left = sent.total_bytes;
  for (std::uint32_t i = sent.datagrams; i-- > 0;) {
    const std::size_t bytes = i == 0 ? left : sent.segment_bytes;
    log.on_sent(sent.last - i, departure, static_cast<std::uint32_t>(bytes));
    left -= bytes;
  }
  in_flight_ += sent.total_bytes;
  spend(now, sent.total_bytes);
}

bool UplinkBundle::asks(Instant now, std::size_t link) const {
  const Link& at = links_[link];
  return !at.asked || now - at.asked_at >= std::max(kAskMin, rtt_ / 4) ||
         in_flight_ + quantum_bytes_ >= pace_.in_flight_bytes;
}

void UplinkBundle::on_asked(Instant now, std::size_t link) {
  links_[link].asked = true;
  links_[link].asked_at = now;
  if (asks_++ == 0) heard_at_ = now;
}

void UplinkBundle::on_report(Instant now, std::size_t link, const Arrivals& arrivals) {
  Link& at = links_[link];
  const std::uint32_t covered = arrivals.largest - at.largest;
  const std::uint32_t received_more = arrivals.received - at.received;
  const std::uint32_t bytes_more = arrivals.received_bytes - at.received_bytes;
  at.largest = arrivals.largest;
  at.received = arrivals.received;
  at.received_bytes = arrivals.received_bytes;
  asks_ = 0;
  heard_at_ = now;
  held_back_ = false;
  if (trust_ < 1) free_at_ = std::min(free_at_, now);  // what silence put off
  trust_ = 1;
  const Departure* const departure = at.log.find(arrivals.largest);
  if (departure == nullptr) return take_pace();

  // A peer that reports more than it was sent makes its line no faster.
  at.covered += covered;
  const std::uint64_t received = std::min<std::uint64_t>(received_more, at.covered - at.counted);
  at.counted += received;
  const std::uint64_t bytes =
      std::min<std::uint64_t>(bytes_more, departure->bytes - at.counted_bytes);
  at.counted_bytes += bytes;
  in_flight_ -= std::min(in_flight_, at.log.cover(*departure));
  delivered_ += bytes;
  delivered_at_ = now;
  delivered_left_ = std::max(delivered_left_, departure->at);

  Sample sample{.now = now};
  sample.rtt = std::max(now - departure->at - arrivals.held_back, Duration(1));
  rtt_ += (sample.rtt - rtt_) / 8;
  at.rtt.add(now, sample.rtt.count());
  sample.rtt_min = Duration(at.rtt.value());
  // Clocks differ by an unknown constant, which the least delay holds as well.
  const auto left_us = static_cast<std::uint32_t>(departure->at.ns / 1000);
  const std::uint32_t raw_us = arrivals.arrived_us - left_us;
  if (!at.one_way_us) at.one_way_us = raw_us;
  // Of 24 bits, with their sign
  const auto since_first_us = static_cast<std::int32_t>((raw_us - *at.one_way_us) << 8) >> 8;
  const std::int64_t one_way_ns = std::int64_t{since_first_us} * 1000;
  at.one_way.add(now, one_way_ns);
  sample.queueing = Duration(one_way_ns - at.one_way.value());
  sample.interval =
      std::max(now - departure->delivered_at, departure->at - departure->delivered_left);
  sample.delivered_bytes = delivered_ - departure->delivered;
  sample.newly_delivered_bytes = bytes;
  sample.covered = covered;
  sample.lost = static_cast<std::int32_t>(covered) - static_cast<std::int32_t>(received);
  sample.in_flight_bytes = in_flight_;
  const Departure* const oldest = at.log.find(arrivals.largest - covered + 1);
  sample.phase =
      oldest != nullptr && oldest->phase == departure->phase ? departure->phase : kNoPhase;
  sample.limited = departure->limited;
  controller_->on_sample(sample);
  take_pace();
}

Duration UplinkBundle::patience() const {
  return 3 * std::max(rtt_, kAskMin);
}

void UplinkBundle::on_wake(Instant now) {
  if (open(now)) held_back_ = false;
  if (!waits() || now - heard_at_ < patience()) return;
  if (asks_ >= kAsksMax) trust_ = std::max(trust_ / 2, kTrustMin);
  for (Link& link : links_) link.log.write_off();
  in_flight_ = 0;
  held_back_ = false;
  heard_at_ = now;
  take_pace();
}

Instant UplinkBundle::next_wake() const {
  Instant at = Instant::infinite_future();
  if (held_back_ && !full()) at = free_at_;
  if (waits()) at = std::min(at, heard_at_ + patience());
  return at;
}

}  // namespace leeway::congestion
