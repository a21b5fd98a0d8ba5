// Ranks as threads that meet in a store, over loopback connections unless a test gives them another
// store.
#pragma once

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rendezvous/agreement.h"
#include "rendezvous/bootstrap.h"
#include "support/secret_line.h"
#include "unit/rendezvous/loopback_peer.h"

namespace leeway::rendezvous {

using namespace std::chrono_literals;

using Joining = std::future<Result<Group>>;

inline LocalConfiguration configuration(int rank, int size, std::uint16_t port) {
  LocalConfiguration local;
  local.rank = static_cast<Rank>(rank);
  local.size = size;
  local.rendezvous = rendezvous_at(port);
  local.datagram_bytes = 1400;
  local.receive_buffer_bytes = 1'000'000u + static_cast<unsigned>(rank);
  local.data_port = static_cast<std::uint16_t>(5000 + rank);
  local.process = 900u + static_cast<unsigned>(rank);
  local.join_timeout = 20s;  // never reached unless a test shortens it
  return local;
}

// Makes the identity of a process whose secret file has one line per digit.
inline std::shared_ptr<const keys::OwnIdentity> identity_with(std::string_view digits) {
  std::string lines;
  for (const char digit : digits) lines.append(secret_digits(digit)).append("\n");
  const auto secrets = keys::Secrets::parse(lines, "test");
  return *keys::OwnIdentity::make(std::make_shared<keys::Secrets>(*secrets));
}

inline RendezvousLimits short_limits() {
  RendezvousLimits limits;
  limits.linger = 500ms;  // for ranks whose threads a busy machine starts late
  return limits;
}

inline Joining join(const LocalConfiguration& local,
                    const RendezvousLimits& limits = short_limits()) {
  return std::async(std::launch::async,
                    [local, limits] { return join_group(local, nullptr, limits); });
}
inline Joining join(int rank, int size, std::uint16_t port) {
  return join(configuration(rank, size, port));
}

inline std::string text(const Result<Group>& result) {
  return result.ok() ? "" : std::string(result.status().text());
}

// Connects to the server at which ranks meet.
inline std::shared_ptr<TcpRendezvous> store_at(std::uint16_t port) {
  return *TcpRendezvous::connect(rendezvous_at(port));
}

class Stopwatch {
 public:
  Duration elapsed() const { return std::chrono::steady_clock::now() - start_; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

inline void expect_equal(const Group& a, const Group& b) {
  EXPECT_EQ(welcome_of(a).SerializeAsString(), welcome_of(b).SerializeAsString());
}

inline const std::vector<std::byte> kLoopbackBytes = {std::byte{127}, std::byte{0}, std::byte{0},
                                                      std::byte{1}};

}  // namespace leeway::rendezvous
