#include "doctor/paths.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "rendezvous/candidate.h"

namespace leeway::tools::doctor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kRoundTrips = 9;
// Time limit for all pairs of ranks together, in both directions.
constexpr double kSecondsMax = 5;
// A first message of 64 KiB gives a rough rate. The length of the second message follows from that
// rate.
constexpr std::size_t kFirstFloats = 16'384;
constexpr std::size_t kFloatsMax = 16u << 20;
constexpr std::size_t kAddressBytes = 64;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One rank's measurements towards another.
struct Measured {
  double rtt = 0;
  double rtt_median = 0;
  double bits_per_second = 0;  // rate of the data that came from the other rank
  double loss = 0;             // likewise
};

class Pair {
 public:
  Pair(Communicator& communicator, int peer, double seconds)
      : communicator_(communicator), peer_(static_cast<Rank>(peer)), seconds_(seconds) {
    options_.delivery = exact(30s);
  }

  Result<Measured> measure() {
    const bool first = communicator_.rank() < peer_;
    Status status = round_trips(first);
    if (status.ok()) status = first ? give() : take();
    if (status.ok()) status = first ? take() : give();
    if (!status.ok()) return status;
    return measured_;
  }

 private:
  Status send(std::span<const float> values) {
    return communicator_.send(values, peer_, options_).status();
  }
  Status receive(std::span<float> values) {
    const auto report = communicator_.recv(values, peer_, options_);
    if (!report.ok()) return report.status();
    loss_ = report->loss_first_pass;
    return Status();
  }

  Status round_trips(bool first) {
    std::array<float, 1> token{};
    std::array<double, kRoundTrips> times{};
    // The first round trip is not counted, because one rank may begin later than the other.
    for (int i = -1; i < kRoundTrips; ++i) {
      const auto start = Clock::now();
      Status status = first ? send(token) : receive(token);
      if (status.ok()) status = first ? receive(token) : send(token);
      if (!status.ok()) return status;
      if (i >= 0) times[static_cast<std::size_t>(i)] = seconds_since(start);
    }
    std::sort(times.begin(), times.end());
    measured_.rtt = times.front();
    measured_.rtt_median = times[kRoundTrips / 2];
    return Status();
  }

  // Sends data to the peer in two messages. The first one gives a rough rate. The second one is as
  // long as the time allows, and the receiver measures its rate.
  Status give() {
    std::vector<float> values(kFirstFloats, 1.0F);
    std::array<float, 1> count{};
    const auto start = Clock::now();
    Status status = send(values);
    if (status.ok()) status = receive(count);
    if (!status.ok()) return status;
    const double took = seconds_since(start);  // includes the way of the answer
    const double moved = std::max({took - measured_.rtt_median, took / 8, 1e-6});
    const double rate = static_cast<double>(kFirstFloats) / moved;
    const double floats = std::clamp(rate * seconds_ / 2, 1.0 * kFirstFloats, 1.0 * kFloatsMax);
    values.assign(static_cast<std::size_t>(floats), 1.0F);
    count[0] = static_cast<float>(values.size());
    status = send(count);
    return status.ok() ? send(values) : status;
  }
  Status take() {
    std::vector<float> values(kFirstFloats);
    std::array<float, 1> count{};
    Status status = receive(values);
    if (status.ok()) status = send(count);
    if (status.ok()) status = receive(count);
    if (!status.ok()) return status;
    // The count is sent as a float, which is exact up to 2^24.
    values.resize(std::clamp<std::size_t>(static_cast<std::size_t>(count[0]), 1, kFloatsMax));
    const auto start = Clock::now();
    status = receive(values);
    const double seconds = std::max(seconds_since(start), 1e-9);
    measured_.bits_per_second = 32.0 * static_cast<double>(values.size()) / seconds;
    measured_.loss = loss_;
    return status;
  }

  Communicator& communicator_;
  const Rank peer_;
  const double seconds_;
  CollectiveOptions options_;
  Measured measured_;
  double loss_ = 0;
};

std::string own_address(const Options& options) {
  const auto address = rendezvous::data_address(options);
  return address.ok() ? address->to_string() : "?";
}

Result<std::vector<std::uint8_t>> gather(Communicator& communicator, const void* own,
                                         std::size_t each) {
  std::vector<std::uint8_t> all(each * static_cast<std::size_t>(communicator.size()));
  std::memcpy(all.data() + each * communicator.rank(), own, each);
  const auto report = communicator.all_gather(
      ConstTensorView{all.data() + each * communicator.rank(), each, DataType::u8},
      TensorView{all.data(), all.size(), DataType::u8});
  if (!report.ok()) return report.status();
  return all;
}

}  // namespace

// Returns the partner of `rank` in this round of a round-robin tournament (the circle method).
int partner_of(int rank, int round, int size) {
  const int players = size + size % 2;
  const int others = players - 1;
  const int last = players - 1;
  int partner = 0;
  if (rank == last) {
    partner = round * (players / 2) % others;
  } else {
    partner = ((round - rank) % others + others) % others;
    if (partner == rank) partner = last;
  }
  return partner < size ? partner : -1;
}

Result<PathsReport> measure_paths(Communicator& communicator) {
  const int size = communicator.size();
  const int rounds = size + size % 2 - 1;
  std::vector<Measured> from(static_cast<std::size_t>(size));
  for (int round = 0; round < rounds; ++round) {
    const int partner = partner_of(static_cast<int>(communicator.rank()), round, size);
    if (partner >= 0) {
      auto measured = Pair(communicator, partner, kSecondsMax / rounds).measure();
      if (!measured.ok()) return measured.status();
      from[static_cast<std::size_t>(partner)] = *measured;
    }
    // All pairs of a round begin together, so that each rank's line carries only one measurement at
    // a time.
    if (const auto report = communicator.barrier(); !report.ok()) return report.status();
  }
  std::array<char, kAddressBytes> address{};
  own_address(communicator.options()).copy(address.data(), kAddressBytes - 1);
  const auto addresses = gather(communicator, address.data(), kAddressBytes);
  if (!addresses.ok()) return addresses.status();
  const auto all = gather(communicator, from.data(), from.size() * sizeof(Measured));
  if (!all.ok()) return all.status();
  PathsReport report;
  if (communicator.rank() != 0) return report;
  std::vector<Measured> table(static_cast<std::size_t>(size) * size);
  std::memcpy(table.data(), all->data(), all->size());
  for (int to = 0; to < size; ++to) {
    report.addresses.emplace_back(
        reinterpret_cast<const char*>(addresses->data() + kAddressBytes * to));
    for (int by = 0; by < size; ++by) {
      if (by == to) continue;
      const Measured& measured = table[static_cast<std::size_t>(to) * size + by];
      report.paths.push_back(
          {by, to, measured.rtt, measured.rtt_median, measured.bits_per_second, measured.loss});
    }
  }
  std::sort(report.paths.begin(), report.paths.end(), [](const auto& a, const auto& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  report.datagram_bytes = communicator.datagram_bytes();
  report.sealed =
      !communicator.options().secret_file.empty() || !communicator.options().tls_ca.empty();
  report.transport = std::string(to_string(communicator.transport()));
  report.congestion = std::string(to_string(communicator.options().congestion));
  report.udp_port = communicator.options().port;
  report.rendezvous = communicator.options().rendezvous;
  return report;
}

}  // namespace leeway::tools::doctor
