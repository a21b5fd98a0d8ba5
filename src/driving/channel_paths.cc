// Proofs, before the first call, that datagrams pass.
#include <algorithm>

#include "driving/channel.h"

namespace leeway::driving {
namespace {

// Paths are proven by then: a rank that has not reported our multicast after this, asked several
// times, is not going to.
constexpr Duration kMulticastProofTime = std::chrono::milliseconds(200);
constexpr Duration kMulticastProbeEvery = std::chrono::milliseconds(20);

// Proofs take a few milliseconds; one that is impossible is mostly refused as soon.
constexpr Duration kMemoryProofTime = std::chrono::milliseconds(500);

// What to look at when ranks met, but their datagrams do not.
const char* path_remedy(TransportKind kind) {
  switch (kind) {
    case TransportKind::verbs:
      return "check the fabric between the ports of LEEWAY_BIND (RoCE: UDP port 4791), or "
             "LEEWAY_TRANSPORT=udp";
    case TransportKind::ucx:
      return "check UCX between the hosts (UCX_NET_DEVICES, UCX_TLS), or LEEWAY_TRANSPORT=udp";
    case TransportKind::shm:
      return "check that all ranks make this call, and that they share /dev/shm";
    case TransportKind::custom:
      return "the transport that this program brings does not deliver, or wait() sleeps through it";
    default:
      return "check that all ranks make this call, and that UDP passes between the hosts "
             "(firewall, LEEWAY_BIND)";
  }
}

}  // namespace

void Channel::probe_all() {
  Driver::Session session(*driver_);
  endpoint().probe_all();
  session.node().touch(*member_);
}

Status Channel::prove_paths(Duration timeout) {
  Status status = hear_all(timeout);
  if (!status.ok()) abort();
  return status;
}

Status Channel::hear_all(Duration timeout) {
  const Instant deadline = steady_now() + timeout;
  Duration pause = std::chrono::milliseconds(2);
  while (true) {
    probe_all();
    const Instant until = std::min(deadline, steady_now() + pause);
    const auto heard = [&] { return endpoint().peers_heard() == config().size - 1; };
    if (driver_->run_until(heard, until)) return Status();
    if (state() == StatusCode::kCancelled) return status();
    if (steady_now() >= deadline) break;
    pause = std::min<Duration>(2 * pause, std::chrono::milliseconds(200));
  }
  std::string silent;
  Driver::Session session(*driver_);
  for (Rank peer = 0; peer < config().size; ++peer) {
    if (peer == config().self || endpoint().heard(peer)) continue;
    silent += (silent.empty() ? "" : ", ") + std::to_string(peer);
  }
  return Status::error(
      StatusCode::kUnavailable,
      "rank %u: no datagram came over %s from rank(s) %s within %.1f s although they joined%s: %s",
      config().self, std::string(to_string(kind())).c_str(), silent.c_str(),
      static_cast<double>(timeout.count()) / 1e9,
      session.sealed() != nullptr && kind() == TransportKind::udp
          ? ", neither straight nor through another rank"
          : "",
      path_remedy(kind()));
}

// Which links keep bytes intact and lead through memory.
void Channel::look_at_links(Driver::Session& session) {
  config_.intact.assign(config_.size, 0);
  int near = 0;
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer == config_.self) continue;
    config_.intact[peer] = session.limits_to(slots_[peer]).intact;
    near += session.mixed() != nullptr && session.mixed()->is_near(slots_[peer]);
  }
  if (near > 0) kind_ = near == config_.size - 1 ? TransportKind::shm : TransportKind::mixed;
}

void Channel::prove_memory() {
  if (!driver_->is_mixed()) return;
  const auto settled = [this] { return driver_->mixed_->settled(); };
  (void)driver_->run_until(settled, steady_now() + kMemoryProofTime);
  Driver::Session session(*driver_);
  look_at_links(session);
  endpoint().keep_intact(config_.intact);
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer != config_.self && driver_->mixed_->is_near(slots_[peer]))
      session.node().lift_size(slots_[peer]);
  }
}

std::string Channel::memory_obstacles(bool of_this_host) {
  std::string all;
  Driver::Session session(*driver_);
  for (Rank peer = 0; peer < config_.size && session.mixed() != nullptr; ++peer) {
    if (peer == config_.self || session.mixed()->is_near(slots_[peer])) continue;
    if (of_this_host && !session.mixed()->may_be_near(slots_[peer])) continue;
    const std::string& why = session.mixed()->obstacle(slots_[peer]);
    all += (all.empty() ? "rank " : "; rank ") + std::to_string(peer) + ": " + why;
  }
  return all;
}

Status Channel::agree_on_size(bool measured, Duration timeout) {
  Status status = settle_size(measured, timeout);
  if (!status.ok()) abort();
  return status;
}

Status Channel::settle_size(bool measured, Duration timeout) {
  const Instant deadline = steady_now() + timeout;
  Duration pause = std::chrono::milliseconds(1);
  const auto agreed = [this] { return member_->agreed_bytes().has_value(); };
  while (true) {
    {
      Driver::Session session(*driver_);
      // Paths are measured as soon as a report has come, which a probe asks for. Memory carries
      // what this rank means to send.
      const bool searched = measured && driver_->measures_sizes() && kind_ != TransportKind::shm;
      if (!session.node().agree_on_size(*member_, searched)) endpoint().probe_all();
      const Rank narrow = searched ? session.node().too_narrow(*member_) : kNoRank;
      if (narrow != kNoRank) {
        return Status::error(StatusCode::kUnavailable,
                             "rank %u: no datagram of 548 bytes reaches rank %u, and shorter ones "
                             "do: the path's MTU must be 576 or more",
                             config().self, unsigned{narrow});
      }
      session.node().touch(*member_);
    }
    const Instant until = std::min(deadline, steady_now() + pause);
    if (driver_->run_until(agreed, until)) break;
    if (state() == StatusCode::kCancelled) return status();
    if (steady_now() >= deadline) {
      std::string silent;
      for (const Rank peer : member_->untold_sizes())
        silent += (silent.empty() ? "" : ", ") + std::to_string(peer);
      return Status::error(
          StatusCode::kUnavailable,
          "rank %u: rank %.200s did not tell within %.1f s how long datagrams may be",
          config().self, silent.c_str(), static_cast<double>(timeout.count()) / 1e9);
    }
    pause = std::min<Duration>(2 * pause, std::chrono::milliseconds(200));
  }
  Driver::Session session(*driver_);
  config_.datagram_bytes = *member_->agreed_bytes();
  endpoint().shorten_datagrams(config_.datagram_bytes);
  return Status();
}

std::vector<Rank> Channel::deaf_to_multicast() {
  std::vector<Rank> deaf;
  const auto all_hear = [&] {
    deaf.clear();
    for (Rank peer = 0; peer < config().size; ++peer) {
      if (peer != config().self && !endpoint().hears_multicast(peer)) deaf.push_back(peer);
    }
    return deaf.empty();
  };
  const Instant deadline = steady_now() + kMulticastProofTime;
  do {
    probe_all();
  } while (!driver_->run_until(all_hear, steady_now() + kMulticastProbeEvery) &&
           steady_now() < deadline);
  return deaf;
}

}  // namespace leeway::driving
