// Tests which addresses ranks use after they met (WIRE 7.21).
#include "rendezvous/meeting_addresses.h"

#include <gtest/gtest.h>

#include "rendezvous/address.h"
#include "unit/rendezvous/loopback_peer.h"

namespace leeway::rendezvous {
namespace {

std::string address_text(const std::vector<std::byte>& bytes) {
  return address_from_bytes(bytes)->to_string();
}
std::string address_text(const control::Hello& hello) {
  return address_from_bytes(std::as_bytes(std::span(hello.data().address())))->to_string();
}

LocalConfiguration guessed(const char* guess) {
  LocalConfiguration local;
  local.data_address = to_bytes(asio::ip::make_address(guess));
  local.may_move = true;
  return local;
}

// Makes the Hello of a rank that guessed the address `guess` and connected to rank 0 from `own` to
// `theirs`.
control::Hello hello_from(const char* guess, const char* own, const char* theirs,
                          bool may_move = true) {
  LocalConfiguration local = guessed(guess);
  local.may_move = may_move;
  control::Hello hello = valid_hello(1, 2);
  hello.mutable_data()->set_fixed(!may_move);
  hello.mutable_data()->set_address(local.data_address.data(), local.data_address.size());
  tell_addresses(local, {asio::ip::make_address(own), asio::ip::make_address(theirs)}, hello);
  return hello;
}

bool always(const asio::ip::address&) {
  return true;
}

TEST(TellAddresses, ARankGoesByTheFamilyThatReachedRankZero) {
  EXPECT_EQ(address_text(hello_from("fd00::2", "10.0.0.2", "10.0.0.1")), "10.0.0.2");
}

TEST(TellAddresses, ARankKeepsTheAddressThatItWasTold) {
  EXPECT_EQ(address_text(hello_from("10.9.0.2", "10.0.0.2", "10.0.0.1", false)), "10.9.0.2");
}

TEST(TellAddresses, LoopbackAndLinkLocalLeadNowhere) {
  EXPECT_EQ(address_text(hello_from("10.0.0.2", "127.0.0.1", "127.0.1.1")), "10.0.0.2");
  EXPECT_EQ(address_text(hello_from("fd00::2", "fe80::2", "fe80::1")), "fd00::2");
}

TEST(TellAddresses, WithoutASecretNoPublicAddressIsTold) {
  EXPECT_EQ(address_text(hello_from("10.0.0.2", "8.8.8.8", "10.0.0.1")), "10.0.0.2");
}

TEST(SettleAddresses, RankZeroIsWhereARankOfAnotherHostReachedIt) {
  LocalConfiguration root = guessed("10.9.0.1");
  std::vector<control::Hello> others = {hello_from("10.0.0.2", "10.0.0.2", "10.0.0.1")};
  settle_addresses(root, others, always);
  EXPECT_EQ(address_text(root.data_address), "10.0.0.1");
  EXPECT_EQ(address_text(others[0]), "10.0.0.2");
}

TEST(SettleAddresses, RanksOfRankZerosHostGoWithIt) {
  LocalConfiguration root = guessed("10.9.0.1");
  std::vector<control::Hello> others = {hello_from("10.9.0.1", "127.0.0.1", "127.0.1.1"),
                                        hello_from("fd00::1", "fd00::1", "fd00::1"),
                                        hello_from("10.8.0.1", "127.0.0.1", "127.0.1.1", false),
                                        hello_from("10.0.0.2", "10.0.0.2", "10.0.0.1")};
  settle_addresses(root, others, always);
  EXPECT_EQ(address_text(others[0]), "10.0.0.1");
  EXPECT_EQ(address_text(others[1]), "10.0.0.1");
  EXPECT_EQ(address_text(others[2]), "10.8.0.1");  // it was told that
  EXPECT_EQ(address_text(others[3]), "10.0.0.2");
}

TEST(SettleAddresses, RanksOfOneHostKeepTheirGuesses) {
  LocalConfiguration root = guessed("10.9.0.1");
  std::vector<control::Hello> others = {hello_from("10.9.0.1", "127.0.0.1", "127.0.1.1")};
  settle_addresses(root, others, always);
  EXPECT_EQ(address_text(root.data_address), "10.9.0.1");
  EXPECT_EQ(address_text(others[0]), "10.9.0.1");
}

// With port forwarding, other ranks reach rank 0 at an address of another host. Rank 0 must not
// take that address for its own.
TEST(SettleAddresses, RankZeroGoesToAddressesOfItsOwnHostOnly) {
  LocalConfiguration root = guessed("10.9.0.1");
  std::vector<control::Hello> others = {hello_from("10.0.0.2", "10.0.0.2", "10.0.0.1")};
  settle_addresses(root, others, [](const asio::ip::address&) { return false; });
  EXPECT_EQ(address_text(root.data_address), "10.9.0.1");
}

TEST(SettleAddresses, ARankZeroThatWasToldItsAddressKeepsIt) {
  LocalConfiguration root = guessed("10.9.0.1");
  root.may_move = false;
  std::vector<control::Hello> others = {hello_from("10.0.0.2", "10.0.0.2", "10.0.0.1")};
  settle_addresses(root, others, always);
  EXPECT_EQ(address_text(root.data_address), "10.9.0.1");
}

}  // namespace
}  // namespace leeway::rendezvous
