#include "doctor/reach.h"

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/udp.hpp>
#include <cstring>
#include <random>
#include <thread>

#include "rendezvous/address.h"
#include "rendezvous/candidate.h"

namespace leeway::tools::doctor {
namespace {

using namespace std::chrono_literals;
using asio::ip::udp;

constexpr std::size_t kTokenBytes = 8;
// The content of a probe datagram. Only ranks of this job know the token.
struct Probe {
  std::array<char, kTokenBytes> token{};
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};
constexpr std::chrono::milliseconds kPause = 40ms;
// Time limit for an exchange of values between all ranks through the store. It is short, because
// all ranks put their values at about the same time.
constexpr Duration kTellWithin = std::chrono::seconds(2);

std::string key_of(const char* what, int rank) {
  return "leeway-doctor/" + std::string(what) + "/" + std::to_string(rank);
}

// Sends probes to each peer at intervals. They go to the address that the peer published, and to
// the address from which the peer's probes come.
class Prober {
 public:
  Prober(udp::socket socket, const std::string& token, int rank,
         const std::vector<std::optional<udp::endpoint>>& peers)
      : socket_(std::move(socket)), rank_(rank), peers_(peers), heard_(peers.size()) {
    token.copy(token_.data(), kTokenBytes);
  }

  void run(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      for (std::size_t to = 0; to < peers_.size(); ++to) {
        if (static_cast<int>(to) == rank_) continue;
        if (peers_[to]) send(to, *peers_[to]);
        if (heard_[to] && heard_[to] != peers_[to]) send(to, *heard_[to]);
      }
      std::this_thread::sleep_for(kPause);
      while (receive()) {
      }
    }
  }
  // Returns a character for each rank: '1' if a probe of that rank arrived, otherwise '0'.
  std::string heard() const {
    std::string all;
    for (const auto& one : heard_) all += one ? '1' : '0';
    return all;
  }

 private:
  void send(std::size_t to, const udp::endpoint& where) {
    const Probe probe{token_, static_cast<std::uint32_t>(rank_), static_cast<std::uint32_t>(to)};
    std::array<char, sizeof(Probe)> bytes{};
    std::memcpy(bytes.data(), &probe, sizeof(probe));
    // An error is ignored, because the peer will report that it did not hear the probe.
    asio::error_code ignored;
    socket_.send_to(asio::buffer(bytes), where, 0, ignored);
  }
  bool receive() {
    std::array<char, 64> bytes{};
    udp::endpoint from;
    asio::error_code error;
    const std::size_t size = socket_.receive_from(asio::buffer(bytes), from, 0, error);
    if (error == asio::error::would_block) return false;
    Probe probe;
    if (error || size != sizeof(probe)) return !error;
    std::memcpy(&probe, bytes.data(), sizeof(probe));
    const bool ours = probe.token == token_ && probe.to == static_cast<std::uint32_t>(rank_);
    if (ours && probe.from < heard_.size()) heard_[probe.from] = from;
    return true;
  }

  udp::socket socket_;
  std::array<char, kTokenBytes> token_{};
  const int rank_;
  const std::vector<std::optional<udp::endpoint>> peers_;
  std::vector<std::optional<udp::endpoint>> heard_;
};

std::optional<udp::endpoint> endpoint_of(const std::string& text) {
  const auto where = rendezvous::parse_host_port(text);
  if (!where.ok()) return std::nullopt;
  asio::error_code error;
  const auto address = asio::ip::make_address(where->host, error);
  if (error) return std::nullopt;
  return udp::endpoint(address, where->port);
}

std::string text_of(const udp::endpoint& where) {
  const std::string host = where.address().to_string();
  return (where.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(where.port());
}

}  // namespace

std::optional<Result<Gathering>> Gathering::join(const Options& options) {
  const int size = options.world_size.value_or(1);
  if (options.rendezvous.empty() || options.store != nullptr || size < 2 || !options.rank)
    return std::nullopt;
  const TcpRendezvous::Security security{.secret_file = options.secret_file,
                                         .secret = options.secret,
                                         .insecure = options.insecure,
                                         .tls_ca = options.tls_ca,
                                         .tls_certificate = options.tls_certificate,
                                         .tls_key = options.tls_key};
  auto store = *options.rank == 0 ? TcpRendezvous::serve(options.rendezvous, security)
                                  : TcpRendezvous::connect(options.rendezvous, security);
  if (!store.ok()) return Result<Gathering>(store.status());
  return Result<Gathering>(Gathering(std::move(*store), static_cast<int>(*options.rank), size));
}

Status Gathering::put(const char* what, const std::string& value) {
  return store_->put(key_of(what, rank_),
                     ByteSpan(reinterpret_cast<const std::byte*>(value.data()), value.size()));
}

// Gets the values that all ranks put under the name `what`, by rank. A value is empty if its rank
// put none in time.
std::vector<std::string> Gathering::get_all(const char* what, Duration patience) {
  std::vector<std::string> keys;
  std::vector<std::string> values(static_cast<std::size_t>(size_));
  keys.reserve(values.size());
  for (int rank = 0; rank < size_; ++rank) keys.push_back(key_of(what, rank));
  int left = size_;
  (void)store_->get_each(keys, patience, [&](std::size_t at, const std::vector<std::byte>& value) {
    values[at].assign(reinterpret_cast<const char*>(value.data()), value.size());
    return --left > 0;
  });
  return values;
}

Status Gathering::await_all(Duration patience) {
  if (const Status status = put("here", "1"); !status.ok()) return status;
  std::string missing;
  const auto here = get_all("here", patience);
  for (int rank = 0; rank < size_; ++rank) {
    if (here[static_cast<std::size_t>(rank)].empty())
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (missing.empty()) return Status();
  return Status::error(StatusCode::kDeadlineExceeded,
                       "rank %d: rank(s) %.200s did not come to %s: start them with the same "
                       "LEEWAY_RENDEZVOUS, and let TCP through to rank 0",
                       rank_, missing.c_str(), store_->address().c_str());
}

Result<Gathering::Reach> Gathering::measure(const Options& options,
                                            std::chrono::milliseconds listen) {
  if (rank_ == 0) {
    std::random_device device;
    std::string token;
    while (token.size() < kTokenBytes) token += std::to_string(device());
    if (const Status status = put("token", token); !status.ok()) return status;
  }
  asio::io_context context;
  udp::socket socket(context);
  std::string own = "?";
  if (const auto address = rendezvous::data_address(options); address.ok()) {
    asio::error_code error;
    const udp::endpoint local(*address, static_cast<std::uint16_t>(options.port));
    socket.open(local.protocol(), error);
    if (!error) socket.bind(local, error);
    if (!error) socket.non_blocking(true, error);
    if (!error) own = text_of(socket.local_endpoint(error));
  }
  if (const Status status = put("address", own); !status.ok()) return status;
  const auto token = store_->get(key_of("token", 0), kTellWithin);
  if (!token.ok()) return token.status();
  Reach reach{.addresses = get_all("address", kTellWithin), .passed = {}, .told = {}};
  std::vector<std::optional<udp::endpoint>> peers;
  for (const std::string& address : reach.addresses) peers.push_back(endpoint_of(address));
  Prober prober(std::move(socket),
                std::string(reinterpret_cast<const char*>(token->data()), token->size()), rank_,
                peers);
  prober.run(listen);
  if (const Status status = put("heard", prober.heard()); !status.ok()) return status;
  const auto heard = get_all("heard", kTellWithin);
  const auto size = static_cast<std::size_t>(size_);
  reach.passed.assign(size, std::vector<bool>(size));
  for (std::size_t to = 0; to < size; ++to) {
    reach.told.push_back(heard[to].size() == size);
    for (std::size_t from = 0; from < heard[to].size() && from < size; ++from)
      reach.passed[from][to] = heard[to][from] == '1';
  }
  return reach;
}

namespace {

const char* family_of(const std::string& address) {
  if (!endpoint_of(address)) return "no address";
  return address.front() == '[' ? "IPv6" : "IPv4";
}

// Returns the ranks that could relay between `one` and `other`, because they have paths from and to
// both.
std::string relays_of(const Gathering::Reach& reach, std::size_t one, std::size_t other) {
  std::string all;
  for (std::size_t via = 0; via < reach.addresses.size(); ++via) {
    if (via == one || via == other) continue;
    const auto both = [&](std::size_t end) {
      return reach.passed[via][end] && reach.passed[end][via];
    };
    if (both(one) && both(other)) all += (all.empty() ? "" : ", ") + std::to_string(via);
  }
  return all;
}

std::string text_of_pair(const Gathering::Reach& reach, std::size_t one, std::size_t other) {
  const bool there = reach.passed[one][other];
  const bool back = reach.passed[other][one];
  const std::string first = std::to_string(one);
  const std::string second = std::to_string(other);
  std::string text = "  UDP between rank " + first + " and rank " + second + ": ";
  if (!there && !back) {
    text += "nothing passes, either way";
  } else {
    text += "nothing passes from rank " + (there ? second : first) + " to rank " +
            (there ? first : second);
  }
  const std::string family = family_of(reach.addresses[one]);
  const std::string others = family_of(reach.addresses[other]);
  text += family == others ? " (" + family + ")"
                           : " (rank " + first + " told " + family + ", rank " + second + " " +
                                 others + ": set LEEWAY_BIND)";
  const std::string relays = relays_of(reach, one, other);
  return text + (relays.empty() ? "; no rank reaches both\n"
                                : "; rank " + relays +
                                      " reaches both, and relays where the group has a secret\n");
}

}  // namespace

std::string broken_paths(const Gathering::Reach& reach) {
  std::string broken;
  for (std::size_t one = 0; one < reach.addresses.size(); ++one) {
    if (!reach.told[one])
      broken += "  rank " + std::to_string(one) + " did not say what it heard\n";
    for (std::size_t other = one + 1; other < reach.addresses.size(); ++other) {
      if (reach.told[one] && reach.told[other] &&
          !(reach.passed[one][other] && reach.passed[other][one]))
        broken += text_of_pair(reach, one, other);
    }
  }
  if (broken.empty()) return "";
  std::string out = "The ranks met over TCP. Their addresses for UDP:\n";
  for (std::size_t rank = 0; rank < reach.addresses.size(); ++rank)
    out += "  rank " + std::to_string(rank) + "  " + reach.addresses[rank] + "\n";
  return out + "Blocked by a firewall, a NAT or a route:\n" + broken;
}

}  // namespace leeway::tools::doctor
