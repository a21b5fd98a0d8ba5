#include "communicator/udp_endpoint.h"

#include <gtest/gtest.h>

#include "rendezvous/address.h"
#include "support/secret_line.h"

namespace leeway::internal {
namespace {

// The table of a group of this process and one other.
struct Table {
  rendezvous::GroupTransport lane;
  std::vector<std::uint64_t> processes;
  keys::JoinedKeys keys;
};

class Meeting : public ::testing::Test {
 protected:
  void SetUp() override {
    auto secrets = *keys::Secrets::parse(secret_digits('a'), "test");
    secrets.use_for_meetings_only();
    Options options;
    options.transport = TransportKind::udp;
    options.bind_address = "127.0.0.1";
    options.world_size = 2;
    auto seat = UdpEndpoint::take_seat(options, std::make_shared<const keys::Secrets>(secrets));
    ASSERT_TRUE(seat.ok()) << seat.status().c_str();
    seat_ = std::move(*seat);
  }

  Table table(std::uint64_t process, const keys::OwnIdentity& other, std::uint16_t port) const {
    Table made;
    const auto loopback = rendezvous::to_bytes(asio::ip::make_address("127.0.0.1"));
    const auto own = seat_->endpoint().candidate()->place();
    made.lane.members = {own, {loopback, port, 1 << 20}};
    made.processes = {seat_->endpoint().process(), process};
    made.keys.own = seat_->identity();
    made.keys.members = {{seat_->identity()->told.public_key, seat_->identity()->told.tag, {}},
                         {other.told.public_key, other.told.tag, {}}};
    return made;
  }
  Rank slot_in(const Table& group) {
    rendezvous::Group met;
    met.datagrams = group.lane;
    met.processes = group.processes;
    met.keys = std::make_shared<const keys::JoinedKeys>(group.keys);
    const auto slots = seat_->endpoint().meet(met, 0);
    EXPECT_TRUE(slots.ok()) << slots.status().c_str();
    return slots.ok() ? (*slots)[1] : kNoRank;
  }
  std::shared_ptr<const keys::OwnIdentity> another() const {
    return *keys::OwnIdentity::make(seat_->identity()->secrets);
  }

  std::unique_ptr<UdpEndpoint::Seat> seat_;
};

TEST_F(Meeting, AProcessKeepsItsSlotInLaterGroups) {
  const auto other = another();
  const Rank slot = slot_in(table(7, *other, 4001));
  EXPECT_EQ(slot_in(table(7, *other, 4001)), slot);
  EXPECT_NE(slot_in(table(8, *another(), 4002)), slot);
}

// If one key had two slots, these would seal different datagrams with the same nonces.
TEST_F(Meeting, AKeyHasOneSlotWhateverProcessATableCallsItBy) {
  const auto other = another();
  const Rank slot = slot_in(table(7, *other, 4001));
  EXPECT_EQ(slot_in(table(8, *other, 4002)), slot);
}

// The table may come from a rank that never met the known process, so it is not believed.
TEST_F(Meeting, WhoClaimsToBeAKnownProcessWithoutItsKeyGetsAnotherSlot) {
  const Rank slot = slot_in(table(7, *another(), 4001));
  EXPECT_NE(slot_in(table(7, *another(), 4002)), slot);
}

}  // namespace
}  // namespace leeway::internal
