#include "compute/auto_threshold.h"

namespace leeway::sim {
namespace {

constexpr std::uint32_t kNever = UINT32_MAX;

}  // namespace

AutoThreshold::AutoThreshold(const AutoThresholdOptions& options)
    : options_(options),
      window_end_(options.first_round + options.window_rounds),
      ranks_(options.ranks,
             {budget::LatencyWindow(options.window_rounds, options.micro_batches), {}, {}, 0}),
      search_({.steps = options.window_rounds, .indifference = budget::kIndifference}) {}

Duration AutoThreshold::on_begin(Instant now, std::uint32_t rank, std::uint32_t round) {
  RankWindow& window = ranks_[rank];
  if (round == window_end_) window.wall = now - window.begin;
  if (window_end_ != kNever && round >= adoption()) {
    search();
    open_next_window();
  }
  if (window_end_ != kNever && round == window_begin()) window.begin = now;
  return round >= adopted_from_ ? threshold_ : threshold_before_;
}

void AutoThreshold::on_computed(std::uint32_t rank, std::uint32_t round,
                                const budget::StepGate& gate) {
  if (window_end_ == kNever || round < window_begin() || round >= window_end_) return;
  ranks_[rank].latencies.add_step(gate.latencies_ns(), gate.aborted_after());
  ranks_[rank].stop_share_1024 = gate.stop_share_1024();
}

void AutoThreshold::search() {
  std::vector<budget::LatencyTable> tables;
  search_.reset();
  for (RankWindow& rank : ranks_) {
    if (!rank.latencies.full()) continue;
    budget::LatencyTable table = rank.latencies.table();
    if (table.ns.empty()) continue;
    table.stop_share_1024 = rank.stop_share_1024;
    search_.add_bounds(table, rank.wall);
    tables.push_back(table);
  }
  for (const budget::LatencyTable& table : tables) search_.add_tables(table);
  choice_ = search_.choose();
  threshold_before_ = threshold_;
  threshold_ = choice_->worthwhile() ? choice_->threshold : budget::kNoThreshold;
  adopted_from_ = adoption();
}

void AutoThreshold::open_next_window() {
  window_end_ = options_.every_rounds == 0 ? kNever : window_end_ + options_.every_rounds;
  for (RankWindow& rank : ranks_) {
    rank.latencies.clear();
    rank.wall = Duration(0);
  }
}

}  // namespace leeway::sim
