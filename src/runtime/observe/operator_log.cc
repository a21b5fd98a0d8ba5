#include "observe/operator_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace leeway::observe {
namespace {

using driving::PeerState;
using rendezvous::LogLevel;
using seal::Refusal;

// Losses are judged once in this period, so a line about them comes at most this often.
constexpr Duration kJudgeEvery = std::chrono::seconds(10);
// Least number of datagrams from which losses are judged.
constexpr std::uint64_t kDatagramsMin = 1000;
// A line is written if this share of datagrams was lost in addition to the noise floor.
constexpr double kLossMore = 0.05;

// A relay's first refusal is logged at once. It gets another line only if it refuses this share of
// datagrams.
constexpr double kRefusedLeast = 0.01;

// A relay's name, such as "192.0.2.1:29501 (rank 0)". The rank is missing if the relay is no
// member.
std::string name_of(const driving::RelayView& relay, const driving::Snapshot& snapshot) {
  std::string name = to_text(relay.address);
  for (const driving::ChannelView& channel : snapshot.channels) {
    for (const driving::PeerView& peer : channel.peers) {
      if (peer.process == relay.process) return name + " (rank " + std::to_string(peer.rank) + ")";
    }
  }
  return name;
}

unsigned long long count(std::uint64_t value) {
  return value;
}

const char* remedy_of(int error) {
  switch (error) {
    case EMSGSIZE:
      return "is the path's MTU smaller than the interface's (LEEWAY_DATAGRAM_BYTES=1200)?";
    case EPERM:
      return "a firewall of this host forbids it";
    default:
      return "is that an address that this host has a way to? LEEWAY_BIND on that rank chooses "
             "another";
  }
}

// Returns text about the last refusal to send. The snapshot's views of communicators tell which
// rank has the refused slot.
std::string why_refused(const driving::Snapshot& snapshot) {
  const transport::SendRefusals& refused = snapshot.refused_sends;
  std::string to = to_text(refused.at);
  for (const driving::ChannelView& channel : snapshot.channels) {
    for (const driving::PeerView& peer : channel.peers) {
      if (peer.process != refused.to) continue;
      to = "rank " + std::to_string(peer.rank) + " at " + to_text(refused.at);
    }
  }
  return ", the last to " + to + ": " + std::strerror(refused.error) + " (errno " +
         std::to_string(refused.error) + "); " + remedy_of(refused.error);
}

}  // namespace

OperatorLog::Sums OperatorLog::sums_of(const driving::Snapshot& snapshot) {
  Sums sums;
  sums.at = snapshot.at;
  sums.host_dropped = snapshot.wire.kernel_drops;
  sums.send_errors = snapshot.wire.send_errors;
  sums.forged = snapshot.seal.refused_for(Refusal::forged);
  sums.replayed = snapshot.seal.refused_for(Refusal::replayed);
  sums.unknown = snapshot.seal.refused_for(Refusal::unknown_tag);
  for (const driving::RelayView& relay : snapshot.relays)
    sums.refused_by_relays += relay.share.refused;
  // Paths belong to processes, so all communicators show the same paths' counters. To count no path
  // twice, only the communicator whose paths sent most is taken.
  for (const driving::ChannelView& channel : snapshot.channels) {
    std::uint64_t sent = 0;
    std::uint64_t lost = 0;
    for (const driving::PeerView& peer : channel.peers) {
      sent += peer.datagrams_sent;
      lost += peer.datagrams_lost;
    }
    if (sent <= sums.sent) continue;
    sums.sent = sent;
    sums.lost = lost;
  }
  return sums;
}

void OperatorLog::look(const driving::Snapshot& snapshot) {
  for (const driving::ChannelView& channel : snapshot.channels)
    tell_peers(channel, peers_[channel.epoch]);
  tell_processes(snapshot);
  tell_shares(snapshot);
  if (peers_.size() > snapshot.channels.size()) {
    std::erase_if(peers_, [&](const auto& entry) {
      return std::none_of(snapshot.channels.begin(), snapshot.channels.end(),
                          [&](const auto& channel) { return channel.epoch == entry.first; });
    });
  }
  if (began_ && snapshot.at - since_.at < kJudgeEvery) return;
  const Sums now = sums_of(snapshot);
  if (began_) judge(snapshot, now);
  began_ = true;
  since_ = now;
}

// Logs the first refusal of a relay at once, and later ones as often as other losses are judged.
void OperatorLog::tell_shares(const driving::Snapshot& snapshot) {
  for (const driving::RelayView& relay : snapshot.relays) {
    const auto [told, is_new] = shares_.try_emplace(relay.process);
    ToldShare& known = told->second;
    if (!is_new && snapshot.at - known.at < kJudgeEvery) continue;
    const std::uint64_t refused = relay.share.refused - known.share.refused;
    const std::uint64_t sent = relay.share.sent - known.share.sent;
    known = {snapshot.at, relay.share};
    const double part = sent == 0 ? 0 : static_cast<double>(refused) / static_cast<double>(sent);
    if (!is_new && part < kRefusedLeast) continue;
    log_.print(LogLevel::warn, "relay share",
               "relay at %s refused %.0f %% of the last %llu datagrams by share: it passes on %.1f "
               "Mb/s of ours, and of all that it relays a quarter of its uplink: forward "
               "LEEWAY_PORT at one of the two that have no path, or raise LEEWAY_RATE at the relay",
               name_of(relay, snapshot).c_str(), part * 100, count(sent),
               static_cast<double>(relay.share.bytes_per_second) * 8 / 1e6);
  }
}

// Logs that a peer gets, changes or loses its relay. Both ranks of a pair log it, because their
// paths may differ.
void OperatorLog::tell_relay(const driving::ChannelView& channel, const driving::PeerView& peer,
                             Known& known) {
  if (peer.relayed == known.relayed && peer.relay == known.relay) return;
  known.relayed = peer.relayed;
  known.relay = peer.relay;
  const unsigned lower = std::min(channel.self, peer.rank);
  const unsigned upper = std::max(channel.self, peer.rank);
  const char* const name = channel.name.c_str();
  if (!peer.relayed) {
    log_.print(LogLevel::info, "path", "\"%s\": rank %u and rank %u have a path of their own", name,
               lower, upper);
  } else if (peer.relay == kNoRank) {
    log_.print(
        LogLevel::info, "relayed",
        "\"%s\": rank %u and rank %u have no path of their own: through a process of another "
        "communicator",
        name, lower, upper);
  } else {
    log_.print(LogLevel::info, "relayed",
               "\"%s\": rank %u and rank %u have no path of their own: through rank %u", name,
               lower, upper, static_cast<unsigned>(peer.relay));
  }
}

void OperatorLog::tell_peers(const driving::ChannelView& channel, std::vector<Known>& known) {
  known.resize(channel.peers.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    const driving::PeerView& peer = channel.peers[i];
    tell_relay(channel, peer, known[i]);
    if (std::exchange(known[i].state, peer.state) != peer.state && peer.state == PeerState::gone) {
      log_.print(LogLevel::info, "peer left", "\"%s\": rank %u left", channel.name.c_str(),
                 unsigned{peer.rank});
    }
  }
}

// Logs processes that changed state, by name and rank in the first communicator that noticed.
void OperatorLog::tell_processes(const driving::Snapshot& snapshot) {
  struct Seen {
    PeerState state = PeerState::joining;
    const char* name = "";
    unsigned rank = 0;
  };
  const auto gravity = [](PeerState state) {
    return state == PeerState::gone ? 0 : static_cast<int>(state);
  };
  std::map<Rank, Seen> processes;
  for (const driving::ChannelView& channel : snapshot.channels) {
    for (const driving::PeerView& peer : channel.peers) {
      Seen& seen = processes[peer.process];
      if (gravity(peer.state) > gravity(seen.state))
        seen = {peer.state, channel.name.c_str(), peer.rank};
    }
  }
  auto before = std::exchange(processes_, {});
  for (const auto& [process, seen] : processes) {
    const PeerState known = before[process];
    const PeerState now = processes_[process] = known == PeerState::dead ? known : seen.state;
    if (now == known) continue;
    if (now == PeerState::suspect) {
      log_.print(LogLevel::info, "peer suspect",
                 "\"%s\": rank %u is silent, although something is expected of it", seen.name,
                 seen.rank);
    } else if (now == PeerState::dead) {
      log_.print(LogLevel::error, "peer dead",
                 "\"%s\": rank %u is given up: calls with it fail, but those whose delivery and "
                 "spread are lossy; shrink() goes on without it",
                 seen.name, seen.rank);
    } else if (known == PeerState::suspect && now == PeerState::alive) {
      log_.print(LogLevel::info, "peer back", "\"%s\": rank %u is heard again", seen.name,
                 seen.rank);
    }
  }
}

void OperatorLog::judge(const driving::Snapshot& snapshot, const Sums& now) {
  const std::uint64_t sent = now.sent - std::min(now.sent, since_.sent);
  // Datagrams that relays refused are not counted here, because they show no overload of the link.
  // They have a log line of their own.
  const std::uint64_t known = since_.lost + (now.refused_by_relays - since_.refused_by_relays);
  const std::uint64_t lost = now.lost - std::min(now.lost, known);
  const double share = sent == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(sent);
  if (!facts_.injected_losses && sent >= kDatagramsMin &&
      share > snapshot.uplink.noise + kLossMore) {
    log_.print(LogLevel::warn, "overload",
               "%.0f %% of the last %llu datagrams were lost on the way: unless the line loses so "
               "many by itself, lower LEEWAY_RATE, or set it",
               share * 100, count(sent));
  }
  if (now.host_dropped > since_.host_dropped) {
    log_.print(LogLevel::warn, "host drops",
               "this host dropped %llu datagrams for want of receive buffer: sysctl -w "
               "net.core.rmem_max=%zu, then start again",
               count(now.host_dropped - since_.host_dropped), facts_.buffer_bytes);
  }
  if (now.send_errors > since_.send_errors) {
    const auto trains = count(now.send_errors - since_.send_errors);
    if (snapshot.refused_sends.count > 0) {
      log_.print(LogLevel::warn, "send errors", "the system refused to send %llu trains%s", trains,
                 why_refused(snapshot).c_str());
    } else {  // shared memory or a device gave them up
      log_.print(LogLevel::warn, "unsent",
                 "%llu trains were lost before they left this host: a peer on it read nothing for "
                 "100 ms or has left, or the network device failed",
                 trains);
    }
  }
  const std::uint64_t forged = now.forged - since_.forged;
  const std::uint64_t replayed = now.replayed - since_.replayed;
  const std::uint64_t unknown = now.unknown - since_.unknown;
  if (forged + replayed + unknown > 0) {
    log_.print(LogLevel::warn, "refused",
               "refused datagrams that no member sealed just now: %llu forged or damaged, %llu "
               "replayed, %llu of unknown senders",
               count(forged), count(replayed), count(unknown));
  }
}

void OperatorLog::lost_segmentation() {
  log_.print(LogLevel::warn, "segmentation",
             "segmentation offload is off: a device or route refused it, and sending costs more of "
             "the processor");
}

}  // namespace leeway::observe
