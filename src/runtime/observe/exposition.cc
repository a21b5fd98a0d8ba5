#include "observe/exposition.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "leeway/version.h"

namespace leeway::observe {
namespace {

using driving::ChannelView;
using driving::PeerView;
using driving::Snapshot;
using Label = prometheus::ClientMetric::Label;
using Labels = std::vector<Label>;
using prometheus::MetricType;

double number(std::uint64_t count) {
  return static_cast<double>(count);
}

Labels with(Labels labels, const char* name, std::string value) {
  labels.push_back({name, std::move(value)});
  return labels;
}

// Metric families in the order in which they were first named.
class Families {
 public:
  void gauge(const char* name, const char* help, const Labels& labels, double value) {
    metric(MetricType::Gauge, name, help, labels).gauge.value = value;
  }
  void counter(const char* name, const char* help, const Labels& labels, double value) {
    metric(MetricType::Counter, name, help, labels).counter.value = value;
  }
  struct Count {
    const char* name;
    const char* help;
    std::uint64_t count;
  };
  void counters(const Labels& labels, std::initializer_list<Count> counts) {
    for (const Count& one : counts) counter(one.name, one.help, labels, number(one.count));
  }
  void calls(const char* name, const char* help, const Labels& labels, const Calls& calls) {
    auto& histogram = metric(MetricType::Histogram, name, help, labels).histogram;
    histogram.sample_count = calls.done;
    histogram.sample_sum = calls.seconds;
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < kCallSeconds.size(); ++i) {
      below += calls.buckets[i];
      histogram.bucket.push_back({below, kCallSeconds[i]});
    }
  }
  std::vector<prometheus::MetricFamily> take() { return std::move(families_); }

 private:
  prometheus::ClientMetric& metric(MetricType type, const char* name, const char* help,
                                   const Labels& labels) {
    const auto found = std::find_if(families_.begin(), families_.end(),
                                    [&](const auto& family) { return family.name == name; });
    auto& family = found != families_.end() ? *found : families_.emplace_back();
    if (family.metric.empty()) {
      family.name = name;
      family.help = help;
      family.type = type;
    }
    family.metric.emplace_back().label = labels;
    return family.metric.back();
  }

  std::vector<prometheus::MetricFamily> families_;
};

void add_refused(Families& out, const Labels& labels, const Snapshot& snapshot) {
  const auto add = [&](const char* reason, std::uint64_t count) {
    out.counter("leeway_refused_datagrams_total", "Datagrams that were dropped unread, by reason.",
                with(labels, "reason", reason), number(count));
  };
  auto refused = snapshot.refused;
  std::uint64_t plan = 0;
  std::uint64_t report = 0;
  std::uint64_t progress = 0;
  for (const ChannelView& channel : snapshot.channels) {
    plan += channel.counters.refused_plan;
    report += channel.counters.refused_report;
    progress += channel.counters.refused_progress;
    for (std::size_t i = 0; i < refused.size(); ++i) refused[i] += channel.counters.refused[i];
  }
  add("stranger", snapshot.wire.from_strangers);
  add("truncated_by_system", snapshot.wire.oversized);
  for (std::size_t i = 1; i < refused.size(); ++i) add(wire::kRefusalNames[i], refused[i]);
  add("plan", plan);
  add("report", report);
  add("progress", progress);
  for (std::size_t i = 1; snapshot.sealed && i < seal::kRefusals; ++i)
    add(seal::kRefusalNames[i], snapshot.seal.refused[i]);
}

void add_driver(Families& out, const Labels& labels, const Snapshot& snapshot) {
  const TransportCounters& wire = snapshot.wire;
  out.gauge("leeway_sealed", "1: datagrams are encrypted and authenticated.", labels,
            snapshot.sealed ? 1 : 0);
  out.counters(
      labels,
      {{"leeway_sent_bytes_total", "Payload of UDP, or of the transport, that left.",
        wire.bytes_sent},
       {"leeway_received_bytes_total", "The same, that arrived.", wire.bytes_received},
       {"leeway_sent_datagrams_total", "Datagrams that left.", wire.datagrams_sent},
       {"leeway_received_datagrams_total", "Datagrams that arrived.", wire.datagrams_received},
       {"leeway_send_errors_total", "Trains that could not be sent.", wire.send_errors},
       {"leeway_host_dropped_datagrams_total",
        "Datagrams that this host dropped because its receive buffer was full.",
        wire.kernel_drops}});
  add_refused(out, labels, snapshot);
  if (snapshot.sealed) {
    out.counter("leeway_forwarded_datagrams_total",
                "Datagrams that were forwarded between peers without a path of their own.", labels,
                number(snapshot.forwarded.datagrams));
    out.counter("leeway_forwarded_bytes_total", "The same in bytes.", labels,
                number(snapshot.forwarded.bytes));
    const auto refused = [&](const char* reason, std::uint64_t count) {
      out.counter("leeway_refused_forwarding_total",
                  "Datagrams that were not forwarded, by reason.", with(labels, "reason", reason),
                  number(count));
    };
    refused("share", snapshot.forwarded.refused_share);
    refused("target", snapshot.forwarded.refused_target);
  }
  for (const driving::RelayView& relay : snapshot.relays) {
    const Labels own = with(labels, "relay", to_text(relay.address));
    out.gauge("leeway_relay_pace_bytes_per_second",
              "What a relay without share for all passes on of this process' datagrams.", own,
              number(relay.share.bytes_per_second));
    out.counter("leeway_relay_sent_datagrams_total", "Datagrams that left for such a relay.", own,
                number(relay.share.sent));
    out.counter("leeway_relay_refused_datagrams_total", "Of these, refused for want of share.", own,
                number(relay.share.refused));
  }
  const driving::UplinkView& uplink = snapshot.uplink;
  if (!uplink.paced) return;
  out.gauge("leeway_pace_bytes_per_second", "What the congestion controller lets leave.", labels,
            uplink.bits_per_second / 8);
  out.gauge("leeway_in_flight_bytes", "Under way to all peers, as far as they reported.", labels,
            number(uplink.in_flight_bytes));
  out.gauge("leeway_noise_floor_ratio",
            "Share of losses that the congestion controller takes for the network's own.", labels,
            uplink.noise);
}

// Adds a peer to the row "others". The row has sums of the peers' values, and the worst value where
// a sum has no meaning.
void add_to(PeerView& sum, const PeerView& peer) {
  sum.state = std::max(sum.state, peer.state);
  sum.relayed |= peer.relayed;
  sum.rtt_measured |= peer.rtt_measured;
  sum.rtt = std::max(sum.rtt, peer.rtt);
  sum.queueing = std::max(sum.queueing, peer.queueing);
  sum.loss = std::max(sum.loss, peer.loss);
  sum.bytes_sent += peer.bytes_sent;
  sum.bytes_delivered += peer.bytes_delivered;
  sum.bytes_received += peer.bytes_received;
  sum.datagrams_sent += peer.datagrams_sent;
  sum.datagrams_lost += peer.datagrams_lost;
  sum.datagrams_received += peer.datagrams_received;
  sum.datagrams_in_flight += peer.datagrams_in_flight;
  sum.window_datagrams += peer.window_datagrams;
  for (std::size_t i = 0; i < sum.limited.size(); ++i) sum.limited[i] += peer.limited[i];
}

void add_peer(Families& out, const Labels& labels, const PeerView& peer) {
  for (int i = 0; i < driving::kPeerStates; ++i) {
    const auto state = static_cast<driving::PeerState>(i);
    out.gauge("leeway_peer_state", "1 for the state that the peer is in.",
              with(labels, "state", to_string(state)), peer.state == state ? 1 : 0);
  }
  out.gauge("leeway_peer_relayed", "1: through another process, for want of a path.", labels,
            peer.relayed ? 1 : 0);
  if (peer.rtt_measured) {
    out.gauge("leeway_peer_rtt_seconds", "Smoothed round trip.", labels, to_seconds(peer.rtt));
  }
  if (peer.rtt_min > Duration(0)) {
    out.gauge("leeway_peer_rtt_min_seconds", "The least round trip of the last minutes.", labels,
              to_seconds(peer.rtt_min));
    out.gauge("leeway_peer_queue_delay_seconds", "One-way delay above the least seen.", labels,
              to_seconds(peer.queueing));
  }
  if (peer.datagrams_sent > 0) {
    out.gauge("leeway_peer_loss_ratio", "Smoothed share of datagrams to the peer that were lost.",
              labels, peer.loss);
  }
  out.counters(
      labels,
      {{"leeway_peer_sent_bytes_total", "To the peer's process.", peer.bytes_sent},
       {"leeway_peer_delivered_bytes_total", "Of these, arrived, as the peer reported.",
        peer.bytes_delivered},
       {"leeway_peer_received_bytes_total", "From the peer's process.", peer.bytes_received},
       {"leeway_peer_sent_datagrams_total", "To the peer's process.", peer.datagrams_sent},
       {"leeway_peer_lost_datagrams_total", "Of these, lost, as the peer reported.",
        peer.datagrams_lost},
       {"leeway_peer_received_datagrams_total", "From the peer's process.",
        peer.datagrams_received}});
  out.gauge("leeway_peer_in_flight_datagrams", "Under way to the peer.", labels,
            peer.datagrams_in_flight);
  out.gauge("leeway_peer_window_datagrams", "As many may be.", labels, peer.window_datagrams);
  for (int i = 0; i < driving::kLimits; ++i) {
    const auto limit = static_cast<driving::Limit>(i);
    out.counter("leeway_peer_limited_seconds_total", "How long data to and from the peer waited.",
                with(labels, "by", to_string(limit)),
                to_seconds(peer.limited[static_cast<std::size_t>(i)]));
  }
}

void add_channel(Families& out, const Labels& labels, const ChannelView& channel) {
  const protocol::EndpointCounters& core = channel.counters;
  Labels info = with(labels, "size", std::to_string(channel.size));
  info = with(std::move(info), "datagram_bytes", std::to_string(channel.datagram_bytes));
  out.gauge("leeway_communicator_info", "A communicator: its ranks, and the size of a datagram.",
            info, 1);
  out.gauge("leeway_open_operations", "Operations that are open now.", labels, channel.rounds_open);
  out.counters(
      labels,
      {{"leeway_deadline_cuts_total", "Operations that their deadline ended.", core.deadline_cuts},
       {"leeway_late_packets_total", "Packets that came after their operation was settled.",
        core.late},
       {"leeway_duplicate_packets_total", "Packets that were there already.", core.duplicate},
       {"leeway_repaired_packets_total", "Packets that were sent again when asked for.",
        core.repairs_sent},
       {"leeway_recovered_packets_total", "Packets that were computed from parity.",
        core.recovered},
       {"leeway_lost_peers_total", "Peers that were given up as dead.", core.peers_given_up}});
  PeerView others;
  for (std::size_t i = 0; i < channel.peers.size(); ++i) {
    const PeerView& peer = channel.peers[i];
    if (i >= kPeersShown) {
      add_to(others, peer);
    } else {
      add_peer(out, with(labels, "peer", std::to_string(peer.rank)), peer);
    }
  }
  if (channel.peers.size() > kPeersShown) add_peer(out, with(labels, "peer", "others"), others);
}

void add_calls(Families& out, const Labels& labels, const Calls& calls) {
  out.calls("leeway_operation_seconds", "From the call to its end on this rank.", labels, calls);
  out.counters(labels,
               {{"leeway_operation_errors_total", "Calls that ended with an error.", calls.failed},
                {"leeway_operation_deadline_cuts_total", "Calls that were settled by the deadline.",
                 calls.deadline_cuts},
                {"leeway_operation_expected_packets_total", "Packets that peers were to send us.",
                 calls.packets_expected},
                {"leeway_operation_missing_packets_total", "Of these, not in any result.",
                 calls.packets_missing}});
  if (!calls.reduced) return;
  out.gauge("leeway_contributors", "Ranks in the latest reduction, mean over packets.", labels,
            calls.contributors_mean);
  out.gauge("leeway_contributors_min", "The same, of the packet with the fewest.", labels,
            calls.contributors_min);
  out.counter("leeway_missing_contributions_total", "Peers whose contribution was lost whole.",
              labels, number(calls.contributions_missing));
}

void add_sheet(Families& out, const Labels& driver, const Board::Sheet& sheet) {
  add_driver(out, driver, sheet.snapshot);
  std::vector<std::string> names;  // communicators of the same name are told apart by a number
  for (const ChannelView& channel : sheet.snapshot.channels) {
    const auto same = std::count(names.begin(), names.end(), channel.name);
    names.push_back(channel.name);
    const std::string name =
        same == 0 ? channel.name : channel.name + "#" + std::to_string(same + 1);
    Labels labels = with(driver, "communicator", name);
    add_channel(out, with(std::move(labels), "rank", std::to_string(channel.self)), channel);
  }
  for (const Calls& calls : sheet.calls) {
    Labels labels = with(driver, "communicator", calls.communicator);
    labels = with(std::move(labels), "operation", wire::to_string(calls.kind));
    add_calls(out, with(std::move(labels), "delivery", std::string(to_string(calls.delivery))),
              calls);
  }
}

}  // namespace

std::vector<prometheus::MetricFamily> exposition(const std::vector<Board::Sheet>& sheets) {
  Families out;
  out.gauge("leeway_build_info", "This library.", {{"version", LEEWAY_VERSION_STRING}}, 1);
  for (std::size_t i = 0; i < sheets.size(); ++i) {
    const Labels driver = {{"driver", std::to_string(i)},
                           {"transport", std::string(to_string(sheets[i].snapshot.kind))}};
    add_sheet(out, driver, sheets[i]);
  }
  return out.take();
}

}  // namespace leeway::observe
