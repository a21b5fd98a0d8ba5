// Tests which transport rank 0 chooses for all.
#include "rendezvous/transport_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "rendezvous/address.h"
#include "unit/rendezvous/loopback_peer.h"

namespace leeway::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using enum TransportKind;

using Offers = std::vector<std::vector<TransportOffer>>;

TransportOffer offer(TransportKind kind, std::uint32_t datagram_bytes = 4096) {
  return {kind, std::vector<std::byte>(24, std::byte{7}), datagram_bytes, 1u << 20, ""};
}
TransportOffer refusal(TransportKind kind, const char* why) {
  return {kind, {}, 0, 0, why};
}

GroupTransport udp_transport(std::size_t size) {
  return {udp, 1472,
          std::vector<GroupTransport::Member>(size, {std::vector<std::byte>(4), 7000, 1u << 20})};
}

Result<GroupTransport> choose(TransportKind wanted, const Offers& offers) {
  return choose_transport(wanted, udp_transport(offers.size()), offers);
}

// Returns the chosen kind as text.
std::string chosen(TransportKind wanted, const Offers& offers) {
  const auto transport = choose(wanted, offers);
  return transport.ok() ? std::string(to_string(transport->kind)) : transport.status().c_str();
}

TEST(ChooseLane, AutomaticTakesWhatAllHave) {
  EXPECT_EQ(chosen(automatic, {{}, {}}), "udp");
  EXPECT_EQ(chosen(automatic, {{offer(verbs)}, {offer(verbs)}}), "verbs");
  EXPECT_EQ(chosen(automatic, {{offer(verbs)}, {}}), "udp");
  EXPECT_EQ(chosen(automatic, {{offer(verbs)}, {refusal(verbs, "port down")}}), "udp");
  EXPECT_EQ(chosen(automatic, {{offer(ucx)}, {offer(ucx)}}), "udp");
  EXPECT_EQ(chosen(automatic, {{offer(verbs), offer(ucx)}, {offer(ucx), offer(verbs)}}), "verbs");
}

TEST(ChooseLane, ATransportAskedForByNameCarriesEverything) {
  EXPECT_EQ(chosen(udp, {{offer(verbs), offer(ucx)}, {offer(verbs), offer(ucx)}}), "udp");
  EXPECT_EQ(chosen(verbs, {{offer(verbs), offer(ucx)}, {offer(verbs), offer(ucx)}}), "verbs");
  EXPECT_EQ(chosen(ucx, {{offer(ucx)}, {offer(ucx)}}), "ucx");
}

TEST(ChooseLane, ARankThatLacksWhatIsAskedForIsNamedWithItsReason) {
  const auto transport = choose(
      verbs, {{offer(verbs)}, {offer(verbs)}, {refusal(verbs, "port down: ip link set up")}});
  ASSERT_FALSE(transport.ok());
  EXPECT_EQ(transport.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(transport.status().c_str(), AllOf(HasSubstr("rank 2"), HasSubstr("verbs"),
                                                HasSubstr("port down: ip link set up")));
  EXPECT_THAT(chosen(ucx, {{}, {offer(ucx)}}), AllOf(HasSubstr("rank 0"), HasSubstr("ucx")));
}

TEST(ChooseLane, TakesTheSmallestDatagramOfTheTransportItself) {
  const Offers offers = {{offer(verbs, 4096), offer(ucx, 9216)},
                         {offer(verbs, 1024), offer(ucx, 9000)}};
  EXPECT_EQ(choose(automatic, offers)->datagram_bytes, 1024u);
  EXPECT_EQ(choose(ucx, offers)->datagram_bytes, 9000u);
  EXPECT_EQ(choose(automatic, {{}, {}})->datagram_bytes, 1472u);
}

TEST(ChooseLane, KeepsAddressesByRank) {
  Offers offers = {{offer(ucx)}, {offer(ucx)}};
  offers[1][0].address.assign(3, std::byte{9});
  offers[1][0].receive_buffer_bytes = 5;
  const auto transport = choose(ucx, offers);
  ASSERT_TRUE(transport.ok());
  EXPECT_EQ(transport->members[1].address, offers[1][0].address);
  EXPECT_EQ(transport->members[1].receive_buffer_bytes, 5u);
  EXPECT_EQ(transport->members[0].address, offers[0][0].address);
}

TEST(CheckWishes, NamesBothSides) {
  LocalConfiguration root;
  root.transport = verbs;
  control::Hello hello = valid_hello(3, 4);
  EXPECT_THAT(check_wishes(hello, root).c_str(),
              AllOf(HasSubstr("rank 3 asks for transport udp"), HasSubstr("rank 0 for verbs"),
                    HasSubstr("LEEWAY_TRANSPORT")));
  EXPECT_EQ(check_wishes(hello, root).code(), StatusCode::kMismatch);
  root.transport = udp;
  EXPECT_TRUE(check_wishes(hello, root).ok());
  root.multicast = true;
  EXPECT_THAT(check_wishes(hello, root).c_str(),
              AllOf(HasSubstr("rank 3 has multicast off"), HasSubstr("rank 0 on"),
                    HasSubstr("LEEWAY_MULTICAST")));
  EXPECT_EQ(check_wishes(hello, root).code(), StatusCode::kMismatch);
}

TEST(OffersOf, CarriesOffersUnchangedAndTextsPrintable) {
  const std::vector<TransportOffer> offers = {offer(verbs), refusal(ucx, "two\nlines")};
  control::Hello hello;
  put_offers(offers, hello);
  const auto back = offers_of(hello);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].kind, verbs);
  EXPECT_EQ(back[0].address, offers[0].address);
  EXPECT_EQ(back[0].datagram_bytes, 4096u);
  EXPECT_EQ(back[0].receive_buffer_bytes, 1u << 20);
  EXPECT_TRUE(back[1].address.empty());
  EXPECT_EQ(back[1].obstacle, "two?lines");
}

TEST(MulticastOf, IsAGroupOfOneOrganisationThatDependsOnTheEpoch) {
  for (const std::uint32_t epoch : {1u, 0x12345678u, 0xFFFFFFFFu}) {
    const auto v4 = address_from_bytes(multicast_of(epoch, true).address);
    const auto v6 = address_from_bytes(multicast_of(epoch, false).address);
    ASSERT_TRUE(v4 && v6);
    EXPECT_TRUE(v4->to_string().starts_with("239.192.")) << *v4;
    EXPECT_TRUE(v6->to_string().starts_with("ff05::")) << *v6;
    const std::uint16_t port = multicast_of(epoch, true).port;
    EXPECT_GE(port, 20'000);
    EXPECT_LT(port, 30'000);
  }
  EXPECT_EQ(address_from_bytes(multicast_of(0x00010203, true).address)->to_string(), "239.192.2.3");
  EXPECT_EQ(address_from_bytes(multicast_of(0x12345678, false).address)->to_string(),
            "ff05::1234:5678");
  std::set<std::pair<std::vector<std::byte>, std::uint16_t>> different;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto group = multicast_of(i << 12 | 1, true);
    different.insert({group.address, group.port});
  }
  EXPECT_EQ(different.size(), 1000u);
}

}  // namespace
}  // namespace leeway::rendezvous
