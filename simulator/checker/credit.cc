#include "checker/credit.h"

#include <algorithm>

namespace leeway::sim {

void Credit::on_report(Rank rank, Rank peer, const wire::Report& report) {
  LinkState& state = link(rank, peer);
  if (protocol::after(report.largest_sequence, state.reported))
    state.reported = report.largest_sequence;
  if (protocol::after(report.group_largest, state.group_reported))
    state.group_reported = report.group_largest;
}

void Credit::on_group_data_sent(Instant now, Rank from, std::uint32_t sequence) {
  bool allowed = false;
  for (Rank to = 0; to < engines_.size(); ++to) {
    if (to == from) continue;
    const LinkState& state = link(from, to);
    const std::uint32_t window = engines_[from]->endpoint().link(to).path().window();
    allowed |= state.group_reported > 0 && sequence - state.group_reported <= window;
  }
  check_.expect(allowed, [&] {
    return format_text(
        "at %.6f ms: rank %u sends datagram %u to every rank, and no rank has reported any within "
        "a window of it",
        static_cast<double>(now.ns) / 1e6, from, sequence);
  });
}

void Credit::on_data_sent(Instant now, Rank from, Rank to, std::uint32_t sequence) {
  if (to == kEveryRank) return on_group_data_sent(now, from, sequence);
  const LinkState& state = link(from, to);
  const std::uint32_t window = engines_[from]->endpoint().link(to).path().window();
  check_.expect(sequence - state.reported <= window, [&] {
    return format_text(
        "at %.6f ms: rank %u sends datagram %u to rank %u, which has reported up to "
        "%u; the window is %u datagrams",
        static_cast<double>(now.ns) / 1e6, from, sequence, to, state.reported, window);
  });
}

}  // namespace leeway::sim
