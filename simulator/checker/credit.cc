#include "checker/credit.h"

#include <algorithm>

namespace leeway::sim {

void Credit::on_report(Rank rank, Rank peer, const wire::Report& report) {
  LinkState& state = link(rank, peer);
  if (protocol::after(report.largest_sequence, state.reported))
    state.reported = report.largest_sequence;
}

void Credit::on_data_sent(Instant now, Rank from, Rank to, std::uint32_t sequence) {
  const LinkState& state = link(from, to);
  const std::uint32_t window = engines_[from]->endpoint().link(to).window();
  check_.expect(sequence - state.reported <= window, [&] {
    return format_text(
        "at %.6f ms: rank %u sends datagram %u to rank %u, which has reported up to "
        "%u; the window is %u datagrams",
        static_cast<double>(now.ns) / 1e6, from, sequence, to, state.reported, window);
  });
}

}  // namespace leeway::sim
