#include "rendezvous/control_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "keys/secret.h"
#include "leeway/options.h"
#include "rendezvous/printable.h"
#include "unit/rendezvous/loopback_peer.h"

namespace leeway::rendezvous {
namespace {

void fill(control::GroupTransport& transport, TransportKind kind, int size) {
  transport.set_transport(static_cast<std::uint32_t>(kind));
  transport.set_datagram_bytes(1400);
  for (int rank = 0; rank < size; ++rank) {
    control::Member& member = *transport.add_members();
    member.set_address(kind == TransportKind::udp ? "\x7f\x01\x01\x01" : "opaque");
    member.set_port(kind == TransportKind::udp ? 5000 : 0);
  }
}

control::Welcome valid_welcome(int size, TransportKind kind = TransportKind::udp) {
  control::Welcome welcome;
  welcome.set_magic(kControlMagic);
  welcome.mutable_group()->set_epoch(1);
  fill(*welcome.mutable_group()->mutable_datagrams(), kind, size);
  for (int rank = 0; rank < size; ++rank) {
    welcome.mutable_group()->add_attempts(1);
    welcome.mutable_group()->add_processes(2);
  }
  return welcome;
}

control::Welcome multicast_welcome(int size) {
  control::Welcome welcome = valid_welcome(size);
  welcome.mutable_group()->mutable_multicast()->set_address("\xef\xc0\x01\x02");
  welcome.mutable_group()->mutable_multicast()->set_port(20'000);
  return welcome;
}

bool accepts(const control::Hello& hello) {
  return parse_hello(value_of(hello)).has_value();
}
bool accepts(const control::Welcome& welcome) {
  return parse_welcome(value_of(welcome), 2).has_value();
}

ByteSpan as_message(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(ParseInvitation, NeedsMagicAndMeetingAndNothingElse) {
  control::Invitation invitation;
  invitation.set_magic(kControlMagic);
  EXPECT_FALSE(parse_invitation(value_of(invitation)).has_value());
  invitation.set_meeting(1);
  EXPECT_TRUE(parse_invitation(value_of(invitation)).has_value());
  invitation.set_magic(1);
  EXPECT_FALSE(parse_invitation(value_of(invitation)).has_value());
  EXPECT_FALSE(parse_invitation({}).has_value());
}

TEST(ParseHello, RefusesWhatIsNotOurs) {
  EXPECT_TRUE(accepts(valid_hello(1, 2)));
  control::Hello hello = valid_hello(1, 2);
  hello.set_magic(kControlMagic + 1);
  EXPECT_FALSE(accepts(hello));
  EXPECT_FALSE(parse_hello({}).has_value());
  EXPECT_FALSE(parse_hello(as_message("GET / HTTP/1.1")).has_value());
}

TEST(ParseHello, RefusesAddressesAndPortsThatCannotBe) {
  for (const std::size_t bytes : {0u, 1u, 3u, 5u, 15u, 17u, 1000u}) {
    control::Hello hello = valid_hello(1, 2);
    hello.mutable_data()->set_address(std::string(bytes, 'x'));
    EXPECT_FALSE(accepts(hello)) << bytes;
  }
  for (const std::size_t bytes : {4u, 16u}) {
    control::Hello hello = valid_hello(1, 2);
    hello.mutable_data()->set_address(std::string(bytes, 'x'));
    EXPECT_TRUE(accepts(hello)) << bytes;
  }
  for (const std::uint32_t port : {0u, 65536u, 0xFFFFFFFFu}) {
    control::Hello hello = valid_hello(1, 2);
    hello.mutable_data()->set_port(port);
    EXPECT_FALSE(accepts(hello)) << port;
  }
}

TEST(ParseHello, LetsACallersOwnTransportComeWithoutAnAddress) {
  control::Hello hello = valid_hello(1, 2);
  hello.mutable_configuration()->set_transport(static_cast<std::uint32_t>(TransportKind::custom));
  hello.clear_data();
  EXPECT_TRUE(accepts(hello));
  hello.mutable_data()->set_port(5000);
  EXPECT_FALSE(accepts(hello));
}

TEST(ParseHello, RefusesOneWithoutAnAttemptAndOneThatIsTooLong) {
  control::Hello hello = valid_hello(1, 2);
  hello.clear_attempt();
  EXPECT_FALSE(accepts(hello));
  hello = valid_hello(1, 2);
  hello.set_place(std::string(limits::kHelloBytesMax, 'x'));
  EXPECT_FALSE(accepts(hello));
}

// Required by WIRE 7.17.
TEST(ParseHello, RefusesMemoryThatCannotBe) {
  const auto with = [](std::size_t boot, std::size_t token) {
    control::Hello hello = valid_hello(1, 2);
    hello.mutable_memory()->set_boot(std::string(boot, 'b'));
    hello.mutable_memory()->set_token(std::string(token, 't'));
    return hello;
  };
  EXPECT_TRUE(accepts(with(16, 16)));
  EXPECT_TRUE(accepts(with(0, 0))) << "it shares none";
  for (const auto& [boot, token] :
       {std::pair{15, 16}, {16, 15}, {17, 16}, {16, 17}, {0, 16}, {16, 0}, {1000, 1000}})
    EXPECT_FALSE(accepts(with(boot, token))) << boot << ' ' << token;
}

TEST(ParseHello, RefusesOffersThatCannotBe) {
  using Damage = std::function<void(control::Hello&)>;
  const auto offering = [](const Damage& damage) {
    control::Hello hello = valid_hello(1, 2);
    control::TransportOffer& offer = *hello.add_offers();
    offer.set_kind(static_cast<std::uint32_t>(TransportKind::ucx));
    offer.set_address(std::string(limits::kTransportAddressBytesMax, 'x'));
    offer.set_datagram_bytes(1400);
    damage(hello);
    return hello;
  };
  EXPECT_TRUE(accepts(offering([](control::Hello&) {})));
  const std::vector<std::pair<const char*, Damage>> damages = {
      {"wish", [](auto& hello) { hello.mutable_configuration()->set_transport(8); }},
      {"udp", [](auto& hello) { hello.mutable_offers(0)->set_kind(1); }},
      {"inproc", [](auto& hello) { hello.mutable_offers(0)->set_kind(4); }},
      {"long", [](auto& hello) { hello.mutable_offers(0)->mutable_address()->push_back('x'); }},
      {"small", [](auto& hello) { hello.mutable_offers(0)->set_datagram_bytes(511); }},
      {"large", [](auto& hello) { hello.mutable_offers(0)->set_datagram_bytes(32769); }},
      {"many",
       [](auto& hello) {
         while (hello.offers_size() <= limits::kTransportOffersMax)
           *hello.add_offers() = hello.offers(0);
       }},
  };
  for (const auto& [name, damage] : damages) EXPECT_FALSE(accepts(offering(damage))) << name;
  const auto absent = offering([](auto& hello) { hello.mutable_offers(0)->clear_address(); });
  EXPECT_TRUE(accepts(absent));
}

TEST(ParseHello, LetsAnotherVersionThroughToBeToldSo) {
  control::Hello hello;
  hello.set_magic(kControlMagic);
  hello.set_protocol_version(wire::kVersion + 1u);
  EXPECT_TRUE(accepts(hello));
}

TEST(ParseWelcome, RefusesAnIncompleteTable) {
  EXPECT_TRUE(accepts(valid_welcome(2)));
  EXPECT_FALSE(accepts(valid_welcome(1)));
  EXPECT_FALSE(accepts(valid_welcome(3)));
  control::Welcome welcome = valid_welcome(2);
  welcome.mutable_group()->set_epoch(0);
  EXPECT_FALSE(accepts(welcome));
  welcome = valid_welcome(2);
  welcome.mutable_group()->add_attempts(1);
  EXPECT_FALSE(accepts(welcome));
  welcome = valid_welcome(2);
  welcome.mutable_group()->mutable_processes()->RemoveLast();
  EXPECT_FALSE(accepts(welcome));
}

TEST(ParseWelcome, RefusesLanesThatCannotBe) {
  using Damage = std::function<void(control::GroupTransport&)>;
  const std::vector<std::pair<const char*, Damage>> of_any = {
      {"datagram", [](control::GroupTransport& transport) { transport.set_datagram_bytes(1); }},
      {"too few",
       [](control::GroupTransport& transport) { transport.mutable_members()->RemoveLast(); }},
      {"automatic", [](control::GroupTransport& transport) { transport.set_transport(0); }},
      {"inproc", [](control::GroupTransport& transport) { transport.set_transport(4); }},
      {"unknown", [](control::GroupTransport& transport) { transport.set_transport(99); }},
      {"no address",
       [](control::GroupTransport& transport) { transport.mutable_members(1)->clear_address(); }},
  };
  for (const TransportKind kind : {TransportKind::udp, TransportKind::ucx}) {
    EXPECT_TRUE(accepts(valid_welcome(2, kind)));
    for (const auto& [name, damage] : of_any) {
      control::Welcome welcome = valid_welcome(2, kind);
      damage(*welcome.mutable_group()->mutable_datagrams());
      EXPECT_FALSE(accepts(welcome)) << name << ", " << to_string(kind);
    }
  }
}

TEST(ParseWelcome, RefusesAddressesThatCannotBe) {
  const auto spoilt = [](const std::function<void(control::Group&)>& damage) {
    control::Welcome welcome = multicast_welcome(2);
    damage(*welcome.mutable_group());
    return welcome;
  };
  EXPECT_FALSE(accepts(
      spoilt([](auto& g) { g.mutable_datagrams()->mutable_members(1)->set_address("123"); })));
  EXPECT_FALSE(accepts(
      spoilt([](auto& g) { g.mutable_datagrams()->mutable_members(1)->set_port(70'000); })));
  const auto opaque = [](std::size_t bytes) {
    control::Welcome welcome = valid_welcome(2, TransportKind::ucx);
    control::GroupTransport& transport = *welcome.mutable_group()->mutable_datagrams();
    transport.mutable_members(1)->set_address(std::string(bytes, 'x'));
    return welcome;
  };
  EXPECT_TRUE(accepts(opaque(limits::kTransportAddressBytesMax)));
  EXPECT_FALSE(accepts(opaque(limits::kTransportAddressBytesMax + 1)));
  EXPECT_FALSE(accepts(spoilt([](auto& g) { g.mutable_multicast()->set_port(0); })));
  EXPECT_FALSE(
      accepts(spoilt([](auto& g) { g.mutable_multicast()->set_address("\x0a\x01\x01\x02"); })));
  EXPECT_TRUE(accepts(
      spoilt([](auto& g) { g.mutable_multicast()->set_address("\xff" + std::string(15, 'x')); })));
  EXPECT_FALSE(accepts(
      spoilt([](auto& g) { g.mutable_multicast()->set_address("\xfe" + std::string(15, 'x')); })));
}

TEST(ParseWelcome, RefusesAnAnswerWithoutOutcome) {
  control::Welcome welcome;
  welcome.set_magic(kControlMagic);
  EXPECT_FALSE(accepts(welcome));
}

// The parser must accept or refuse any bytes, and what it accepts must obey the contract.
TEST(ParseHello, IsTotalOverDamagedMessages) {
  std::mt19937 random(1);
  const std::string valid = valid_hello(1, 2).SerializeAsString();
  int accepted = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string damaged = valid.substr(0, random() % (valid.size() + 1));
    for (unsigned flips = random() % 4; flips > 0 && !damaged.empty(); --flips) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1u << random() % 8);
    }
    const auto hello = parse_hello(as_message(damaged));
    if (!hello || hello->protocol_version() != wire::kVersion) continue;
    ++accepted;
    const std::size_t address_bytes = hello->data().address().size();
    const bool has_udp =
        hello->configuration().transport() != static_cast<std::uint32_t>(TransportKind::custom);
    EXPECT_TRUE(address_bytes == 4 || address_bytes == 16 || (address_bytes == 0 && !has_udp));
    EXPECT_GE(hello->data().port(), has_udp ? 1u : 0u);
    EXPECT_LE(hello->data().port(), 65535u);
  }
  EXPECT_GT(accepted, 0);
}

TEST(Rejection, CarriesCodeAndText) {
  const Status reason = Status::error(StatusCode::kUnavailable, "rank 3 never came");
  const Status back = status_of(rejection_of(reason).rejected());
  EXPECT_EQ(back.code(), StatusCode::kUnavailable);
  EXPECT_EQ(back.text(), reason.text());
}

TEST(Rejection, OfAnUnknownCodeIsStillAnError) {
  for (const std::uint32_t code : {0u, 10u, 255u, 0xFFFFFFFFu}) {
    control::Rejection rejection;
    rejection.set_code(code);
    EXPECT_EQ(status_of(rejection).code(), StatusCode::kMismatch) << code;
  }
}

TEST(Printable, KeepsTerminalsSafe) {
  EXPECT_EQ(printable("plain text"), "plain text");
  EXPECT_EQ(printable("\x1b[2J\n\x7f\xc3\xa9"), "?[2J????");
  EXPECT_EQ(printable(std::string(100, 'x'), 5), "xxxxx");
}

TEST(ParseHello, RefusesAnIdentityThatCannotBeUsed) {
  control::Hello hello = valid_hello(1, 2);
  control::Identity& identity = *hello.mutable_identity();
  identity.set_public_key(std::string(32, 'k'));
  identity.add_secrets(5);
  EXPECT_TRUE(parse_hello(value_of(hello)).has_value());
  identity.set_public_key(std::string(31, 'k'));
  EXPECT_FALSE(parse_hello(value_of(hello)).has_value());
  identity.set_public_key(std::string(32, 'k'));
  for (std::size_t i = 0; i < keys::kSecretsMax; ++i) identity.add_secrets(6);
  EXPECT_FALSE(parse_hello(value_of(hello)).has_value());
  identity.clear_secrets();
  EXPECT_FALSE(parse_hello(value_of(hello)).has_value());
}

}  // namespace
}  // namespace leeway::rendezvous
