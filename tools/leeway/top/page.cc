#include "top/page.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "base/plain_text.h"
#include "format.h"

namespace leeway::tools::top {
namespace {

// Two readings of a process's metrics, `seconds` apart, and what grew in between.
class Looks {
 public:
  Looks(const Samples& before, const Samples& now, double seconds)
      : before_(before), now_(now), seconds_(seconds) {}

  double now(std::string_view name, const Labels& labels, double otherwise = 0) const {
    return now_.value(name, labels).value_or(otherwise);
  }
  double grown(std::string_view name, const Labels& labels) const {
    const double past = before_.value(name, labels).value_or(0);
    const double present = now(name, labels);
    return present >= past ? present - past : present;  // the process was started anew
  }
  double per_second(std::string_view name, const Labels& labels) const {
    return grown(name, labels) / seconds_;
  }
  // Returns the sum of growths over all series that have these labels.
  double all_grown(std::string_view name, const Labels& labels) const {
    double sum = 0;
    for (const Series& series : now_.of(name)) {
      const bool all = std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
        const auto found = series.labels.find(label.first);
        return found != series.labels.end() && found->second == label.second;
      });
      if (all) sum += grown(name, series.labels);
    }
    return sum;
  }
  const Samples& latest() const { return now_; }
  double seconds() const { return seconds_; }

 private:
  const Samples& before_;
  const Samples& now_;
  const double seconds_;
};

std::string at(const Labels& labels, const char* name) {
  const auto found = labels.find(name);
  return found == labels.end() ? "" : found->second;
}

void find_limit(const Looks& looks, const Labels& peer, Row& row) {
  double most = 0;
  double sum = 0;
  for (const char* const by : {"relay", "uplink", "grant", "peer", "deadline", "application"}) {
    Labels labels = peer;
    labels["by"] = by;
    const double seconds = looks.grown("leeway_peer_limited_seconds_total", labels);
    sum += seconds;
    if (seconds > most) {
      most = seconds;
      row.limit = by;
    }
  }
  row.limit_share = sum > 0 ? most / sum : 0;
}

Row row_of(const Looks& looks, const Labels& peer) {
  Row row;
  row.peer = at(peer, "peer");
  for (const Series& series : looks.latest().of("leeway_peer_state")) {
    Labels without = series.labels;
    without.erase("state");
    if (without == peer && series.value == 1) row.state = at(series.labels, "state");
  }
  row.relayed = looks.now("leeway_peer_relayed", peer) == 1;
  if (row.relayed && row.state == "alive") row.state = "relayed";
  row.rtt_seconds = looks.now("leeway_peer_rtt_seconds", peer, -1);
  row.queue_seconds = looks.now("leeway_peer_queue_delay_seconds", peer, -1);
  const double sent = looks.grown("leeway_peer_sent_datagrams_total", peer);
  row.loss =
      sent > 0 ? std::min(1.0, looks.grown("leeway_peer_lost_datagrams_total", peer) / sent) : -1;
  row.out_per_second = looks.per_second("leeway_peer_sent_bytes_total", peer);
  row.in_per_second = looks.per_second("leeway_peer_received_bytes_total", peer);
  find_limit(looks, peer, row);
  return row;
}

Group group_of(const Looks& looks, const Labels& info) {
  const Labels socket = {{"driver", at(info, "driver")}};
  Labels calls = socket;
  calls["communicator"] = at(info, "communicator");
  Labels member = calls;
  member["rank"] = at(info, "rank");
  Group group;
  group.communicator = at(info, "communicator");
  group.transport = at(info, "transport");
  group.rank = at(info, "rank");
  group.size = at(info, "size");
  group.datagram_bytes = at(info, "datagram_bytes");
  group.sealed = looks.now("leeway_sealed", socket) == 1;
  group.pace_per_second = looks.now("leeway_pace_bytes_per_second", socket, -1);
  group.noise = looks.now("leeway_noise_floor_ratio", socket, -1);
  const double done = looks.all_grown("leeway_operation_seconds_count", calls);
  group.calls_per_second = done / looks.seconds();
  if (done > 0) group.call_seconds = looks.all_grown("leeway_operation_seconds_sum", calls) / done;
  const double expected = looks.all_grown("leeway_operation_expected_packets_total", calls);
  if (expected > 0)
    group.missing = looks.all_grown("leeway_operation_missing_packets_total", calls) / expected;
  group.refused = looks.all_grown("leeway_refused_datagrams_total", socket);
  for (const Series& series : looks.latest().of("leeway_relay_pace_bytes_per_second")) {
    if (at(series.labels, "driver") != at(info, "driver")) continue;
    group.relays.push_back({at(series.labels, "relay"), series.value,
                            looks.grown("leeway_relay_sent_datagrams_total", series.labels),
                            looks.grown("leeway_relay_refused_datagrams_total", series.labels)});
  }
  for (const Series& series : looks.latest().of("leeway_peer_relayed")) {
    const bool ours = at(series.labels, "driver") == at(info, "driver") &&
                      at(series.labels, "communicator") == group.communicator &&
                      at(series.labels, "rank") == group.rank;
    if (ours) group.rows.push_back(row_of(looks, series.labels));
  }
  return group;
}

// Returns "12.3 ms" or "450 us".
std::string time_text(double seconds) {
  if (seconds < 0) return "-";
  if (seconds < 1e-3) return format("%.0f us", seconds * 1e6);
  if (seconds < 1) return format("%.1f ms", seconds * 1e3);
  return format("%.2f s", seconds);
}

// Returns a rate in bits a second, the unit in which network links are sold.
std::string rate_text(double bytes_per_second) {
  const double bits = bytes_per_second * 8;
  if (bits < 1e6) return format("%.0f kb/s", bits / 1e3);
  if (bits < 1e9) return format("%.1f Mb/s", bits / 1e6);
  return format("%.2f Gb/s", bits / 1e9);
}

std::string percent_text(double share) {
  if (share < 0) return "-";
  return format(share > 0 && share < 0.01 ? "%.2f %%" : "%.1f %%", share * 100);
}

void add_group(std::string& out, const std::string& address, const Group& group) {
  out += format("%s  \"%s\" rank %s of %s over %s, %s, datagrams of %s bytes", address.c_str(),
                group.communicator.c_str(), group.rank.c_str(), group.size.c_str(),
                group.transport.c_str(), group.sealed ? "sealed" : "not sealed",
                group.datagram_bytes.c_str());
  if (group.pace_per_second >= 0) out += ", pace " + rate_text(group.pace_per_second);
  out += format("\n  %.1f calls/s", group.calls_per_second);
  if (group.calls_per_second > 0) {
    out += " of " + time_text(group.call_seconds) + ", " + percent_text(group.missing) +
           " of packets missing";
  }
  if (group.refused > 0) out += format(", %.0f datagrams refused", group.refused);
  for (const Relay& relay : group.relays) {
    out += format("\n  relay at %s passes on ", relay.address.c_str()) +
           rate_text(relay.pace_per_second) + " of ours, and refused " +
           percent_text(relay.sent > 0 ? relay.refused / relay.sent : 0) +
           format(" of %.0f datagrams by share", relay.sent);
  }
  out += format("\n  %6s  %-8s %9s %8s %8s %11s %11s %9s  %s\n", "peer", "state", "rtt", "loss",
                "noise", "out", "in", "queue", "waits for");
  for (const Row& row : group.rows) {
    out += format("  %6s  %-8s %9s %8s %8s %11s %11s %9s  %s %.0f %%\n", row.peer.c_str(),
                  row.state.c_str(), time_text(row.rtt_seconds).c_str(),
                  percent_text(row.loss).c_str(), percent_text(group.noise).c_str(),
                  rate_text(row.out_per_second).c_str(), rate_text(row.in_per_second).c_str(),
                  time_text(row.queue_seconds).c_str(), row.limit.c_str(), row.limit_share * 100);
  }
}

// Converts a value to JSON. Negative values mean "not known" and become null.
nlohmann::json known(double value) {
  return value < 0 ? nlohmann::json() : nlohmann::json(value);
}

nlohmann::json json_of(const Row& row) {
  return {{"peer", row.peer},
          {"state", row.state},
          {"relayed", row.relayed},
          {"rtt_seconds", known(row.rtt_seconds)},
          {"loss", known(row.loss)},
          {"out_bytes_per_second", row.out_per_second},
          {"in_bytes_per_second", row.in_per_second},
          {"queue_seconds", known(row.queue_seconds)},
          {"limit", row.limit},
          {"limit_share", row.limit_share}};
}

nlohmann::json json_of(const Relay& relay) {
  return {{"address", relay.address},
          {"pace_bytes_per_second", relay.pace_per_second},
          {"sent", relay.sent},
          {"refused", relay.refused}};
}

nlohmann::json json_of(const Group& group) {
  nlohmann::json relays = nlohmann::json::array();
  for (const Relay& relay : group.relays) relays.push_back(json_of(relay));
  nlohmann::json peers = nlohmann::json::array();
  for (const Row& row : group.rows) peers.push_back(json_of(row));
  return {{"communicator", group.communicator},
          {"transport", group.transport},
          {"rank", group.rank},
          {"size", group.size},
          {"datagram_bytes", group.datagram_bytes},
          {"sealed", group.sealed},
          {"pace_bytes_per_second", known(group.pace_per_second)},
          {"noise_floor", known(group.noise)},
          {"calls_per_second", group.calls_per_second},
          {"call_seconds", known(group.call_seconds)},
          {"missing", known(group.missing)},
          {"refused", group.refused},
          {"relays", relays},
          {"peers", peers}};
}

}  // namespace

Process compare(const std::string& address, const Samples& before, const Samples& now,
                double seconds) {
  Process process;
  process.address = address;
  if (now.of("leeway_build_info").empty()) {
    process.error = "what answers there is not Leeway";
    return process;
  }
  const Looks looks(before, now, seconds);
  for (const Series& series : now.of("leeway_communicator_info"))
    process.groups.push_back(group_of(looks, series.labels));
  return process;
}

std::string to_text(const std::vector<Process>& processes) {
  std::string out;
  for (const Process& process : processes) {
    if (!process.error.empty()) out += process.address + "  " + process.error + "\n\n";
    if (process.error.empty() && process.groups.empty())
      out += process.address + "  no communicator is open\n\n";
    for (const Group& group : process.groups) {
      add_group(out, process.address, group);
      out += "\n";
    }
  }
  for (std::size_t at = 0; at < out.size(); ++at) {
    if (out[at] != '\n') make_plain(std::span(&out[at], 1));
  }
  return out;
}

std::string to_json(const std::vector<Process>& processes) {
  nlohmann::json all = nlohmann::json::array();
  for (const Process& process : processes) {
    nlohmann::json groups = nlohmann::json::array();
    for (const Group& group : process.groups) groups.push_back(json_of(group));
    nlohmann::json one = {{"address", process.address}, {"communicators", groups}};
    if (!process.error.empty()) one["error"] = process.error;
    all.push_back(one);
  }
  // `replace`: text that is not UTF-8 would otherwise make dump() throw.
  return nlohmann::json({{"processes", all}})
             .dump(2, ' ', true, nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace leeway::tools::top
