// Which transports a rank opens for which wish, and what it says about them.
#include "rendezvous/transport_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/address.h"
#include "rendezvous/transport_survey.h"

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

std::vector<TransportKind> opened_for(const Options& options) {
  const auto choice = TransportChoice::open(options);
  EXPECT_TRUE(choice.ok()) << choice.status().c_str();
  std::vector<TransportKind> kinds;
  for (const auto& candidate : choice->candidates()) {
    kinds.push_back(candidate.kind);
    EXPECT_EQ(candidate.opened == nullptr, !candidate.obstacle.ok());
  }
  return kinds;
}

TEST(TransportChoice, OpensWhatIsWantedAndNothingElse) {
  using enum TransportKind;
  EXPECT_THAT(opened_for(wishing(automatic, 2)), ElementsAre(verbs, ucx));
  EXPECT_THAT(opened_for(wishing(automatic, 1)), IsEmpty());
  EXPECT_THAT(opened_for(wishing(udp, 2)), IsEmpty());
  EXPECT_THAT(opened_for(wishing(verbs, 2)), ElementsAre(verbs));
  EXPECT_THAT(opened_for(wishing(ucx, 1)), ElementsAre(ucx));
}

TEST(TransportChoice, FaultsAreForUdpUnlessAnotherIsAskedForByName) {
  Options options = wishing(TransportKind::automatic, 2);
  options.faults.loss = 0.1;
  EXPECT_THAT(opened_for(options), IsEmpty());
  options.transport = TransportKind::ucx;
  EXPECT_THAT(opened_for(options), ElementsAre(TransportKind::ucx));
}

TEST(TransportChoice, TellsTheRendezvousWishesPlaceAndOffers) {
  Options options = wishing(TransportKind::automatic, 2);
  options.multicast = true;
  const auto choice = TransportChoice::open(options);
  ASSERT_TRUE(choice.ok()) << choice.status().c_str();
  const LocalConfiguration local = choice->local_configuration(options);
  EXPECT_EQ(local.transport, TransportKind::automatic);
  EXPECT_TRUE(local.multicast);
  EXPECT_EQ(address_from_bytes(local.data_address)->to_string(), "127.0.0.1");
  EXPECT_NE(local.data_port, 0);
  ASSERT_EQ(local.offers.size(), 2u);
  for (const TransportOffer& offer :
       local.offers) {  // an address or a reason, whatever this machine has
    EXPECT_EQ(offer.address.empty(), !offer.obstacle.empty());
    EXPECT_EQ(offer.address.empty(), offer.datagram_bytes == 0);
  }
}

TEST(TransportChoice, RefusesAnAddressThatIsNone) {
  Options options = wishing(TransportKind::udp, 2);
  options.bind_address = "eth0";
  const auto choice = TransportChoice::open(options);
  ASSERT_FALSE(choice.ok());
  EXPECT_THAT(choice.status().c_str(), HasSubstr("\"eth0\" is not an IP address"));
}

TEST(TransportSurvey, SpeaksFromTheAddressThatIsBoundTo) {
  EXPECT_EQ(likely_address(wishing(TransportKind::automatic, 2)).to_string(), "127.0.0.1");
  Options towards;
  towards.rendezvous = "127.0.0.1:4000";
  EXPECT_EQ(likely_address(towards).to_string(), "127.0.0.1");
}

TEST(TransportSurvey, FaultsLeaveUdpAndSayWhy) {
  Options options;
  options.faults.loss = 0.1;
  const AutomaticChoice choice = choose_automatically(options, likely_address(options));
  EXPECT_EQ(choice.datagrams, TransportKind::udp);
  EXPECT_FALSE(choice.exact_over_ucx);
  EXPECT_THAT(choice.why, HasSubstr("fault"));
}

TEST(TransportSurvey, GivesDevicesOrAReason) {
  for (const TransportSurvey& survey : {survey_verbs(), survey_ucx()})
    EXPECT_EQ(survey.devices.empty(), !survey.obstacle.ok());
}

}  // namespace
}  // namespace leeway::rendezvous
