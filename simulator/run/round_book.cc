#include "run/round_book.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::sim {

RoundBook::RoundBook(std::uint32_t ranks)
    : dead_(ranks, false), submitted_ns_(ranks, 0), busy_ns_(ranks, 0), rounds_done_(ranks, 0) {}

OpenRound& RoundBook::round(std::uint32_t number) {
  const auto [at, made] = open_.try_emplace(number);
  OpenRound& round = at->second;
  if (made) {
    round.record.round = number;
    round.record.begin_ns = INT64_MAX;
    round.record.first_submit_ns = INT64_MAX;
    round.record.contributors_min = UINT32_MAX;
    round.finished.assign(dead_.size(), false);
    round.failed.assign(dead_.size(), false);
  }
  return round;
}

void RoundBook::on_begin(Instant now, std::uint32_t number) {
  RoundRecord& record = round(number).record;
  record.begin_ns = std::min(record.begin_ns, now.ns);
}

void RoundBook::on_submit(Instant now, std::uint32_t rank, std::uint32_t number) {
  RoundRecord& record = round(number).record;
  record.first_submit_ns = std::min(record.first_submit_ns, now.ns);
  submitted_ns_[rank] = now.ns;
}

void RoundBook::on_failed(std::uint32_t rank, std::uint32_t number) {
  OpenRound& open = round(number);
  ++open.record.failed_calls;
  open.failed[rank] = true;
}

void RoundBook::on_call(std::uint32_t rank, std::uint32_t number, const CallResult& result) {
  OpenRound& open = round(number);
  RoundRecord& record = open.record;
  if (!result.status.ok()) on_failed(rank, number);
  record.deadline_cuts += result.deadline_cut;
  record.expected += result.expected;
  record.arrived += result.arrived;
  record.arrived_first += result.arrived_first;
  record.bytes_sent += result.bytes_sent;
  if (!result.status.ok() || result.contributors_mean <= 0) return;
  open.contributors += result.contributors_mean;
  ++open.reductions;
  record.contributors_min = std::min(record.contributors_min, result.contributors_min);
}

void RoundBook::on_finish(Instant now, std::uint32_t rank, std::uint32_t number) {
  OpenRound& open = round(number);
  const std::int64_t took = now.ns - submitted_ns_[rank];
  open.finished[rank] = true;
  open.call_ns.push_back(took);
  open.record.end_ns = std::max(open.record.end_ns, now.ns);
  busy_ns_[rank] += took;
  if (open.failed[rank]) return;
  ++rounds_done_[rank];
  keep_call(static_cast<double>(took) / 1e6);
}

void RoundBook::keep_call(double ms) {
  if (calls_++ % calls_every_ != 0) return;
  call_ms_.push_back(ms);
  if (call_ms_.size() < kCallsKept) return;
  for (std::size_t i = 0; i < kCallsKept / 2; ++i) call_ms_[i] = call_ms_[2 * i];
  call_ms_.resize(kCallsKept / 2);
  calls_every_ *= 2;
}

void RoundBook::on_death(std::uint32_t rank) {
  dead_[rank] = true;
}

bool RoundBook::complete(std::uint32_t& number) const {
  if (open_.empty()) return false;
  const auto& [lowest, open] = *open_.begin();
  for (std::size_t rank = 0; rank < dead_.size(); ++rank) {
    if (!dead_[rank] && !open.finished[rank]) return false;
  }
  if (open.call_ns.empty()) return false;  // all ranks that were in the round died
  number = lowest;
  return true;
}

RoundRecord& RoundBook::close(std::uint32_t number) {
  OpenRound& open = round(number);
  RoundRecord& record = open.record;
  std::sort(open.call_ns.begin(), open.call_ns.end());
  record.call_ns_max = open.call_ns.back();
  record.call_ns_median = open.call_ns[(open.call_ns.size() - 1) / 2];
  record.live_ranks = live_ranks();
  if (open.reductions > 0) {
    record.contributors_mean = open.contributors / open.reductions;
  } else {
    record.contributors_min = 0;
  }
  records_.push_back(record);
  open_.erase(number);
  return records_.back();
}

std::uint32_t RoundBook::live_ranks() const {
  return static_cast<std::uint32_t>(std::count(dead_.begin(), dead_.end(), false));
}

}  // namespace leeway::sim
