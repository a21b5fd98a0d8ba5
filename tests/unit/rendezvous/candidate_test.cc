// Tests which transports a rank opens for which options, and what it says about them.
#include "rendezvous/candidate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rendezvous/address.h"
#include "rendezvous/trials.h"

namespace leeway::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Options wishing(TransportKind kind, int size) {
  Options options;
  options.rank = 0;
  options.world_size = size;
  options.bind_address = "127.0.0.1";
  options.transport = kind;
  return options;
}

// Returns the transports beside UDP that a rank tries to open, whether or not this machine has
// them.
std::vector<TransportKind> tried_for(const Options& options) {
  const auto candidates = open_candidates(options);
  EXPECT_TRUE(candidates.ok()) << candidates.status().c_str();
  EXPECT_EQ(candidates->open.front()->kind(), TransportKind::udp);
  std::vector<TransportKind> kinds;
  for (const TransportOffer& offer : candidates->local.offers) {
    const bool open =
        std::any_of(candidates->open.begin(), candidates->open.end(),
                    [&](const auto& candidate) { return candidate->kind() == offer.kind; });
    EXPECT_EQ(open, offer.obstacle.empty());
    kinds.push_back(offer.kind);
  }
  return kinds;
}

TEST(Candidates, OpensWhatIsWantedAndNothingElse) {
  using enum TransportKind;
  EXPECT_THAT(tried_for(wishing(automatic, 2)), ElementsAre(verbs));
  EXPECT_THAT(tried_for(wishing(automatic, 1)), IsEmpty());
  EXPECT_THAT(tried_for(wishing(udp, 2)), IsEmpty());
  EXPECT_THAT(tried_for(wishing(verbs, 2)), ElementsAre(verbs));
  EXPECT_THAT(tried_for(wishing(ucx, 1)), ElementsAre(ucx));
}

TEST(Candidates, FaultsAreForUdpUnlessAnotherIsAskedForByName) {
  Options options = wishing(TransportKind::automatic, 2);
  options.faults.loss = 0.1;
  EXPECT_THAT(tried_for(options), IsEmpty());
  options.transport = TransportKind::ucx;
  EXPECT_THAT(tried_for(options), ElementsAre(TransportKind::ucx));
}

TEST(Candidates, TellsTheRendezvousWishesPlaceAndOffers) {
  Options options = wishing(TransportKind::automatic, 2);
  options.multicast = true;
  const auto candidates = open_candidates(options);
  ASSERT_TRUE(candidates.ok()) << candidates.status().c_str();
  const LocalConfiguration& local = candidates->local;
  EXPECT_EQ(local.transport, TransportKind::automatic);
  EXPECT_TRUE(local.multicast);
  EXPECT_EQ(address_from_bytes(local.data_address)->to_string(), "127.0.0.1");
  EXPECT_NE(local.data_port, 0);
  ASSERT_EQ(local.offers.size(), 1u);
  const TransportOffer& offer = local.offers[0];
  // The offer has an address or a reason, depending on this machine.
  EXPECT_EQ(offer.address.empty(), !offer.obstacle.empty());
  EXPECT_EQ(offer.address.empty(), offer.datagram_bytes == 0);
}

TEST(Candidates, RefusesAnAddressThatIsNone) {
  Options options = wishing(TransportKind::udp, 2);
  options.bind_address = "eth0";
  const auto candidates = open_candidates(options);
  ASSERT_FALSE(candidates.ok());
  EXPECT_THAT(candidates.status().c_str(), HasSubstr("\"eth0\" is not an IP address"));
}

TEST(Candidates, ARendezvousThatIsMissingOrNoneNamesItsVariable) {
  Options options = wishing(TransportKind::udp, 2);
  options.bind_address.clear();
  EXPECT_THAT(open_candidates(options).status().c_str(),
              HasSubstr("rank 0 does not know where rank 0 is"));
  EXPECT_THAT(open_candidates(options).status().c_str(), HasSubstr("LEEWAY_RENDEZVOUS=host:port"));
  options.rendezvous = "host";
  EXPECT_THAT(open_candidates(options).status().c_str(),
              HasSubstr("rendezvous \"host\" is not host:port or [v6]:port with a port of 1 to "
                        "65535 (Options::rendezvous, LEEWAY_RENDEZVOUS)"));
}

TEST(Trials, SpeaksFromTheAddressThatIsBoundTo) {
  EXPECT_EQ(likely_address(wishing(TransportKind::automatic, 2)).to_string(), "127.0.0.1");
  Options towards;
  towards.rendezvous = "127.0.0.1:4000";
  EXPECT_EQ(likely_address(towards).to_string(), "127.0.0.1");
}

TEST(Trials, FaultsLeaveUdpAndSayWhy) {
  Options options;
  options.faults.loss = 0.1;
  const AutomaticChoice choice = choose_automatically(options, likely_address(options));
  EXPECT_EQ(choice.datagrams, TransportKind::udp);
  EXPECT_THAT(choice.why, HasSubstr("fault"));
}

TEST(Candidates, ALaneOfAKindThatIsNotOpenIsAnErrorAndEachServesOnce) {
  auto candidates = open_candidates(wishing(TransportKind::udp, 1));
  ASSERT_TRUE(candidates.ok()) << candidates.status().c_str();
  const GroupTransport verbs{TransportKind::verbs, 1472, {{{}, 0, 1}}};
  EXPECT_EQ(candidates->connect(verbs, 0).status().code(), StatusCode::kInternal);
  const GroupTransport udp{TransportKind::udp, 1472, {candidates->open.front()->place()}};
  EXPECT_TRUE(candidates->connect(udp, 0).ok());
  EXPECT_EQ(candidates->connect(udp, 0).status().code(), StatusCode::kInternal);
}

TEST(ListDevices, GivesDevicesOrAReason) {
  for (const TransportKind kind : {TransportKind::verbs, TransportKind::ucx}) {
    const Devices devices = list_devices(kind);
    EXPECT_TRUE(devices.ok() ? !devices->empty() : !devices.status().text().empty());
  }
}

}  // namespace
}  // namespace leeway::rendezvous
