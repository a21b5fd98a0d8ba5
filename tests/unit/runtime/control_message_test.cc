#include "runtime/control_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "unit/runtime/loopback_peer.h"

namespace leeway::runtime {
namespace {

control::Welcome valid_welcome(int size) {
  control::Welcome welcome;
  welcome.set_magic(kControlMagic);
  welcome.mutable_group()->set_epoch(1);
  welcome.mutable_group()->set_datagram_bytes(1400);
  for (int rank = 0; rank < size; ++rank) {
    control::Member& member = *welcome.mutable_group()->add_members();
    member.mutable_data()->set_address("\x7f\x01\x01\x01");
    member.mutable_data()->set_port(5000);
  }
  return welcome;
}

bool accepts(const control::Hello& hello) {
  return parse_hello(hello.SerializeAsString()).has_value();
}
bool accepts(const control::Welcome& welcome) {
  return parse_welcome(welcome.SerializeAsString(), 2).has_value();
}

TEST(FrameOf, PutsTheLengthFirstInNetworkOrder) {
  control::Rejection message;
  message.set_text(std::string(300, 'x'));
  const std::string frame = frame_of(message);
  const std::string body = message.SerializeAsString();
  ASSERT_EQ(body.size(), 303u);
  EXPECT_EQ(frame, std::string("\0\0\x01\x2f", 4) + body);
}

TEST(ParseHello, RefusesWhatIsNotOurs) {
  EXPECT_TRUE(accepts(valid_hello(1, 2)));
  control::Hello hello = valid_hello(1, 2);
  hello.set_magic(kControlMagic + 1);
  EXPECT_FALSE(accepts(hello));
  EXPECT_FALSE(parse_hello("").has_value());
  EXPECT_FALSE(parse_hello("GET / HTTP/1.1").has_value());
}

TEST(ParseHello, RefusesAddressesAndPortsThatCannotBe) {
  for (const std::size_t bytes : {1u, 3u, 5u, 15u, 17u, 1000u}) {
    control::Hello hello = valid_hello(1, 2);
    hello.mutable_data()->set_address(std::string(bytes, 'x'));
    EXPECT_FALSE(accepts(hello)) << bytes;
  }
  for (const std::size_t bytes : {0u, 4u, 16u}) {
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
  welcome.mutable_group()->mutable_members(1)->mutable_data()->set_address("123");
  EXPECT_FALSE(accepts(welcome));
  welcome = valid_welcome(2);
  welcome.mutable_group()->mutable_members(1)->mutable_data()->set_port(70'000);
  EXPECT_FALSE(accepts(welcome));
  welcome = valid_welcome(2);
  welcome.mutable_group()->set_datagram_bytes(1);
  EXPECT_FALSE(accepts(welcome));
}

TEST(ParseWelcome, RefusesAnAnswerWithoutOutcome) {
  control::Welcome welcome;
  welcome.set_magic(kControlMagic);
  EXPECT_FALSE(accepts(welcome));
}

// Whatever the bytes, the answer is yes or no; what is accepted obeys the contract.
TEST(ParseHello, IsTotalOverDamagedMessages) {
  std::mt19937 random(1);
  const std::string valid = valid_hello(1, 2).SerializeAsString();
  int accepted = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string damaged = valid.substr(0, random() % (valid.size() + 1));
    for (unsigned flips = random() % 4; flips > 0 && !damaged.empty(); --flips) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1u << random() % 8);
    }
    const auto hello = parse_hello(damaged);
    if (!hello || hello->protocol_version() != wire::kVersion) continue;
    ++accepted;
    const std::size_t address_bytes = hello->data().address().size();
    EXPECT_TRUE(address_bytes == 0 || address_bytes == 4 || address_bytes == 16);
    EXPECT_GE(hello->data().port(), 1u);
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

}  // namespace
}  // namespace leeway::runtime
