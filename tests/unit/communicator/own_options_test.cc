// Tests options that each rank may choose for itself: one rank chooses otherwise than its peers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/secret_line.h"
#include "unit/communicator/near_group.h"

namespace leeway::internal {
namespace {

using namespace std::chrono_literals;

struct Choice {
  const char* name;
  std::function<void(Options&)> make;
};

const std::vector<Choice>& choices() {
  static const std::vector<Choice> all = {
      {"datagrams of 600 bytes", [](Options& own) { own.datagram_bytes = 600; }},
      {"datagrams of 1,200 bytes", [](Options& own) { own.datagram_bytes = 1200; }},
      {"datagrams of 1,400 bytes", [](Options& own) { own.datagram_bytes = 1400; }},
      {"datagrams of 9,000 bytes", [](Options& own) { own.datagram_bytes = 9000; }},
      {"a small socket buffer", [](Options& own) { own.socket_buffer_bytes = 128 << 10; }},
      {"injected loss", [](Options& own) { own.faults.loss = 0.02; }},
  };
  return all;
}

class OwnOptions : public NearCallsOfAGroup, public ::testing::WithParamInterface<TransportKind> {};

TEST_P(OwnOptions, OfOneRankMakeAGroup) {
  for (const Choice& choice : choices()) {
    for (const bool sealed : {false, true}) {
      SCOPED_TRACE(std::string(choice.name) + (sealed ? ", sealed" : ""));
      Options options;
      options.join_timeout = 10s;
      if (sealed) options.secret = secret_digits('a');
      Group group = group_over(GetParam(), 3, options, [&](std::size_t rank, Options& own) {
        if (rank == 1) choice.make(own);
      });
      if (HasFatalFailure()) return;
      expect_sums(group);
      for (const auto& communicator : group)
        EXPECT_EQ(communicator->datagram_bytes(), group[0]->datagram_bytes());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfOneHost, OwnOptions,
                         ::testing::Values(TransportKind::automatic, TransportKind::mixed,
                                           TransportKind::udp),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

}  // namespace
}  // namespace leeway::internal
