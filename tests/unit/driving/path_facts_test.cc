#include "driving/path_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "leeway/status.h"

namespace leeway::driving {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

NetworkAddress v4(std::uint8_t last, std::uint16_t port) {
  NetworkAddress address{.port = port};
  address.ip[10] = address.ip[11] = 0xFF;
  address.ip[12] = 10;
  address.ip[15] = last;
  return address;
}

PathFacts silent() {
  return {.self = 0, .peer = 1, .sent = 30, .own = v4(1, 4000), .theirs = v4(2, 5000)};
}

TEST(PathText, OfASilentPeerHasBothAddressesAndTheWayThatIsBrokenForSure) {
  EXPECT_THAT(text_of(silent()), AllOf(HasSubstr("no datagram came from there (10.0.0.2:5000)"),
                                       HasSubstr("30 went there from here (10.0.0.1:4000)"),
                                       HasSubstr("blocked from rank 1 to rank 0, or both ways"),
                                       HasSubstr("LEEWAY_BIND")));
}

TEST(PathText, OfAPeerThatIsHeardNamesTheOneWayThatIsBlocked) {
  PathFacts facts = silent();
  facts.heard = true;
  facts.came = 31;
  EXPECT_THAT(text_of(facts), AllOf(HasSubstr("of 30 datagrams from here (10.0.0.1:4000) none "
                                              "arrived there (10.0.0.2:5000), and 31 came"),
                                    HasSubstr("one way, from rank 0 to rank 1")));
}

TEST(PathText, OfWhatTheSystemRefusesHasItsErrorAndNumber) {
  PathFacts facts = silent();
  facts.refused = {.to = 1, .count = 29, .error = ENETUNREACH};
  EXPECT_THAT(text_of(facts),
              AllOf(HasSubstr("the system refused 29: Network is unreachable (errno 101)"),
                    HasSubstr("LEEWAY_BIND on rank 1")));
  facts.refused.error = EPERM;
  EXPECT_THAT(text_of(facts), HasSubstr("a firewall of this host forbids UDP"));
}

TEST(PathText, WhatWasTooLongForItsInterfaceSaysNothingOfThePath) {
  PathFacts facts = silent();
  facts.refused = {.to = 1, .count = 3, .error = EMSGSIZE};
  EXPECT_THAT(text_of(facts), Not(HasSubstr("refused")));
}

TEST(PathText, OfAPeerBehindATranslatorNamesWhereItsDatagramsComeFrom) {
  PathFacts facts = silent();
  facts.from_strangers = 28;
  facts.stranger = v4(9, 777);
  EXPECT_THAT(text_of(facts), AllOf(HasSubstr("28 datagrams from 10.0.0.9:777"), HasSubstr("NAT"),
                                    HasSubstr("leeway keygen")));
  facts.sealed = true;  // a sealed peer is found at its address
  EXPECT_THAT(text_of(facts), Not(HasSubstr("NAT")));
}

TEST(PathText, OfAPeerThatLeftRefersToItsOwnError) {
  PathFacts facts = silent();
  facts.heard = facts.gone = true;
  facts.arrived = 7;
  facts.came = 9;
  EXPECT_THAT(text_of(facts),
              AllOf(HasSubstr("7 arrived"), HasSubstr("rank 1 has left: its own error says why")));
}

TEST(PathText, OfAProcessThatIsHeardOtherwiseAsksForTheCall) {
  PathFacts facts = silent();
  facts.came = 12;
  EXPECT_THAT(text_of(facts), AllOf(HasSubstr("rank 1 has not come to this call, though 12"),
                                    HasSubstr("do all ranks make this call?")));
}

TEST(PathText, OfATransportWithoutAddressesHasItsOwnRemedy) {
  const PathFacts facts{.self = 0, .peer = 1, .kind = TransportKind::verbs, .sent = 3};
  EXPECT_THAT(text_of(facts), AllOf(HasSubstr("4791"), Not(HasSubstr("there ("))));
}

// An error has room for Status::kTextMax characters, and about 60 of them precede this text.
TEST(PathText, FitsIntoAnErrorWithTheLongestAddressesOfV4) {
  PathFacts facts = silent();
  facts.own = facts.theirs = facts.stranger = {
      .ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 255, 255, 255, 255}, .port = 65535};
  facts.self = 1000;
  facts.peer = 1001;
  facts.refused = {.to = 1, .count = 104, .error = ENETUNREACH};
  const std::size_t room = Status::kTextMax - 60;
  EXPECT_LE(text_of(facts).size(), room);
  facts.heard = true;
  EXPECT_LE(text_of(facts).size(), room);
  facts.heard = false;
  facts.from_strangers = 104;
  EXPECT_LE(text_of(facts).size(), room);
}

}  // namespace
}  // namespace leeway::driving
