#include "driving/carrier.h"

#include <algorithm>

namespace leeway::driving {
namespace {

constexpr std::array<const char*, wire::kRefusals> kRefusalNames = {"",
                                                                    "refused_truncated",
                                                                    "refused_oversized",
                                                                    "refused_magic",
                                                                    "refused_version",
                                                                    "refused_checksum",
                                                                    "refused_type",
                                                                    "refused_epoch",
                                                                    "refused_misrouted",
                                                                    "refused_field"};

// A communicator that is closed under its callers' operations lets them end for so many time-outs
// of the slowest link.
constexpr int kPatienceTimeouts = 64;

// Paths are proven by then: who has not reported our multicast after this, asked several times, is
// not going to.
constexpr Duration kMulticastProofTime = std::chrono::milliseconds(200);
constexpr Duration kMulticastProbeEvery = std::chrono::milliseconds(20);

// What to look at when ranks met, but their datagrams do not.
const char* path_remedy(TransportKind kind) {
  switch (kind) {
    case TransportKind::verbs:
      return "check the fabric between the ports of LEEWAY_BIND (RoCE: UDP port 4791), or "
             "LEEWAY_TRANSPORT=udp";
    case TransportKind::ucx:
      return "check UCX between the hosts (UCX_NET_DEVICES, UCX_TLS), or LEEWAY_TRANSPORT=udp";
    case TransportKind::custom:
      return "the transport that this program brings does not deliver, or wait() sleeps through it";
    default:
      return "check that UDP passes between the hosts (firewall, LEEWAY_BIND)";
  }
}

}  // namespace

Carrier::Carrier(TransportKind kind, const protocol::EndpointConfig& config,
                 std::unique_ptr<DatagramTransport> transport,
                 const transport::FaultTransport* faults)
    : kind_(kind),
      config_(config),
      faults_(faults),
      driver_(config, std::move(transport), [this] { publish(); }) {}

Duration Carrier::slowest_timeout() {
  Driver::Session session(driver_);
  return session.engine().endpoint().slowest_timeout();
}

void Carrier::leave() {
  const Instant end = steady_now() + kPatienceTimeouts * slowest_timeout();
  const bool finished = driver_.run_until([this] { return active_.empty(); }, end);
  {
    Driver::Session session(driver_);
    const Instant now = steady_now();
    if (!finished) {
      session.engine().cancel_all(
          now, Status::error(StatusCode::kCancelled, "rank %u: communicator closed", config_.self));
    }
    session.engine().endpoint().leave(now);
  }
  driver_.run_until([this] { return driver_.left(); }, Instant::infinite_future());
}

Carrier::~Carrier() {
  leave();
  Driver::Session session(driver_);
  session.flush();
  publish();
}

void Carrier::probe_all() {
  Driver::Session session(driver_);
  session.engine().endpoint().probe_all();
}

Status Carrier::prove_paths(Duration timeout) {
  const Instant start = steady_now();
  const Instant deadline = start + timeout;
  Duration pause = std::chrono::milliseconds(2);
  while (true) {
    probe_all();
    const Instant until = std::min(deadline, steady_now() + pause);
    const auto heard = [this] { return driver_.peers_heard() == config_.size - 1; };
    if (driver_.run_until(heard, until)) return Status();
    if (steady_now() >= deadline) break;
    pause = std::min<Duration>(2 * pause, std::chrono::milliseconds(200));
  }
  std::string silent;
  Driver::Session session(driver_);
  for (Rank peer = 0; peer < config_.size; ++peer) {
    if (peer == config_.self || session.engine().endpoint().heard(peer)) continue;
    silent += (silent.empty() ? "" : ", ") + std::to_string(peer);
  }
  return Status::error(
      StatusCode::kUnavailable,
      "rank %u: no datagram came over %s from rank(s) %s within %.1f s although they joined: %s",
      config_.self, std::string(to_string(kind_)).c_str(), silent.c_str(),
      static_cast<double>(timeout.count()) / 1e9, path_remedy(kind_));
}

std::shared_ptr<WorkState> Carrier::submit(const collective::OperationSpec& spec) {
  auto work = std::make_shared<WorkState>();
  work->request.spec = spec;
  work->carrier = this;
  Driver::Session session(driver_);
  active_.push_back(work);
  session.submit(work->request);
  session.pump();
  return work;
}

Status Carrier::register_memory(ByteSpan memory) {
  Driver::Session session(driver_);
  return session.transport().register_memory(memory);
}

void Carrier::forget_memory(ByteSpan memory) {
  Driver::Session session(driver_);
  session.transport().forget_memory(memory);
}

void Carrier::publish() {
  std::erase_if(active_, [](const std::shared_ptr<WorkState>& work) {
    if (!work->request.done) return false;
    work->done.store(true, std::memory_order_release);
    return true;
  });
}

Result<CollectiveReport> Carrier::wait(WorkState& work) {
  if (!work.done.load(std::memory_order_acquire)) {
    // Operations end by their own deadlines; there is no other.
    driver_.run_until([&] { return work.done.load(std::memory_order_relaxed); },
                      Instant::infinite_future());
  }
  if (!work.request.status.ok()) return work.request.status;
  return work.request.report;
}

std::vector<Rank> Carrier::deaf_to_multicast() {
  const auto deaf = [this] {
    std::vector<Rank> ranks;
    for (Rank peer = 0; peer < config_.size; ++peer) {
      if (peer != config_.self && !driver_.hears_multicast(peer)) ranks.push_back(peer);
    }
    return ranks;
  };
  const Instant deadline = steady_now() + kMulticastProofTime;
  std::vector<Rank> last;
  const auto all_hear = [&] {
    last = deaf();
    return last.empty();
  };
  do {
    probe_all();
  } while (!driver_.run_until(all_hear, steady_now() + kMulticastProbeEvery) &&
           steady_now() < deadline);
  return last;
}

void Carrier::add_counters(const std::string& prefix, Counters& rows) {
  const std::size_t first = rows.size();
  Driver::Session session(driver_);
  const protocol::EndpointCounters& core = session.engine().endpoint().counters();
  const TransportCounters wire = session.transport().counters();
  const Counters own = {
      {"datagrams_sent", wire.datagrams_sent},
      {"datagrams_received", wire.datagrams_received},
      {"bytes_sent", wire.bytes_sent},
      {"bytes_received", wire.bytes_received},
      {"send_calls", wire.send_calls},
      {"receive_calls", wire.receive_calls},
      {"refused_stranger", wire.from_strangers},
      {"refused_truncated_by_system", wire.oversized},
      {"send_errors", wire.send_errors},
      {"datagrams_copied", wire.datagrams_copied},
      {"kernel_drops", wire.kernel_drops},
      {"data_sent", core.data_sent},
      {"group_sent", core.group_sent},
      {"group_left", core.group_left},
      {"data_received", core.data_received},
      {"repairs_sent", core.repairs_sent},
      {"repair_requests", core.repair_requests},
      {"reports_sent", core.reports_sent},
      {"probes_sent", core.probes_sent},
      {"duplicate", core.duplicate},
      {"late", core.late},
      {"closed_round", core.closed_round},
      {"future_round", core.future_round},
      {"early_kept", core.early_kept},
      {"early_dropped", core.early_dropped},
      {"refused_plan", core.refused_plan},
      {"refused_report", core.refused_report},
      {"rounds_opened", core.rounds_opened},
      {"rounds_failed", core.rounds_failed},
      {"deadline_cuts", core.deadline_cuts},
  };
  rows.insert(rows.end(), own.begin(), own.end());
  for (int i = 1; i < wire::kRefusals; ++i) rows.emplace_back(kRefusalNames[i], core.refused[i]);
  if (faults_ != nullptr) {
    for (auto& row : faults_->named_fault_counters()) rows.push_back(std::move(row));
  }
  for (std::size_t i = first; i < rows.size(); ++i) rows[i].first = prefix + rows[i].first;
}

}  // namespace leeway::driving
