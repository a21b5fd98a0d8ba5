#include "rendezvous/variable_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rendezvous/environment.h"

namespace leeway::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<OddVariable> odd_among(const std::vector<std::string>& entries) {
  std::vector<const char*> pointers;
  for (const std::string& entry : entries) pointers.push_back(entry.c_str());
  pointers.push_back(nullptr);
  return odd_variables(pointers.data());
}

Status check(const std::vector<std::string>& entries) {
  return check_names(odd_among(entries));
}

std::string meant_by(const std::string& name) {
  const auto odd = odd_among({name + "=x"});
  if (odd.size() != 1) return "not odd";
  return odd[0].meant == nullptr ? "none" : odd[0].meant;
}

TEST(OddVariables, AVariableThatIsReadIsNotOdd) {
  std::vector<std::string> all = {"PATH=/bin", "HOME=/root", "LEE_WAY=x", "RANK=0", "empty", "LE="};
  for (const EnvironmentVariable& variable : environment_variables())
    all.push_back(std::string(variable.name) + "=x");
  for (const char* const name :
       {"LEEWAY_NCCL_POLICY", "LEEWAY_NCCL_SMS", "LEEWAY_COMMAND", "LEEWAY_LAUNCHER_PID",
        "LEEWAY_TEST_LINKS", "LEEWAY_VM_DIR", "LEEWAY_SLOW_TESTS", "LEEWAY_BUILD_TESTS"})
    all.push_back(std::string(name) + "=x");
  EXPECT_THAT(odd_among(all), IsEmpty());
}

TEST(OddVariables, ASlipOfTheHandHasTheNearestName) {
  EXPECT_EQ(meant_by("LEEWAY_TRANSPRT"), "LEEWAY_TRANSPORT");
  EXPECT_EQ(meant_by("LEEWAY_TRANPSORT"), "LEEWAY_TRANSPORT");
  EXPECT_EQ(meant_by("LEEWAY_WORLDSIZE"), "LEEWAY_WORLD_SIZE");
  EXPECT_EQ(meant_by("LEEWAY_NCCL_POLCY"), "LEEWAY_NCCL_POLICY");
  EXPECT_EQ(meant_by("leeway_rate"), "LEEWAY_RATE");
  EXPECT_EQ(meant_by("LEWAY_RATE"), "LEEWAY_RATE");
  EXPECT_EQ(meant_by("LEEWAY_TIMEOUT"), "none");
  EXPECT_EQ(meant_by("LEEWAY_LOSS"), "none");
  EXPECT_EQ(meant_by("LEEWAY_LOSG"), "LEEWAY_LOG");
  EXPECT_EQ(meant_by("LEEWAY_HOME"), "none");
  EXPECT_EQ(meant_by("LEEWAY_FILE_NAME"), "none");
}

TEST(OddVariables, ATypoMakesNoOtherProgramsVariableOdd) {
  EXPECT_EQ(meant_by("LEEWARD_RATES_OF_CHANGE"), "not odd");
  EXPECT_EQ(meant_by("GATEWAY_RATE"), "not odd");
  EXPECT_EQ(meant_by("LEEWAY_" + std::string(5000, 'X')), "not odd");
}

TEST(OddVariables, WhatSoundsLikeProtectionIsTakenForIt) {
  for (const char* const name :
       {"LEEWAY_SECRET", "LEEWAY_SECRETFILE", "LEEWAY_SECRT_FILE", "LEEWAY_SECRT",
        "LEEWAY_SECRET_PATH", "LEEWAY_SECRET_KEY_PATH", "leeway_secret_file", "LEEWY_SECRET_FILE"})
    EXPECT_EQ(meant_by(name), "LEEWAY_SECRET_FILE") << name;
  EXPECT_EQ(meant_by("LEEWAY_REQUIRE_SEAL"), "LEEWAY_REQUIRE_SEALED");
  EXPECT_EQ(meant_by("LEEWAY_SEALED"), "LEEWAY_REQUIRE_SEALED");
  EXPECT_EQ(meant_by("LEEWAY_CERT"), "LEEWAY_TLS_CERT");
  EXPECT_EQ(meant_by("LEEWAY_TLS_CERTIFICATE"), "LEEWAY_TLS_CERT");
}

TEST(CheckNames, AMisspeltSecretWouldLeaveTheGroupOpen) {
  for (const char* const entry :
       {"LEEWAY_SECRET=/etc/key", "LEEWAY_SECRETFILE=/etc/key", "LEEWAY_REQUIRE_SEALD=1"}) {
    const Status status = check({"PATH=/bin", entry});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    const std::string name(entry, std::string(entry).find('='));
    EXPECT_THAT(status.c_str(), AllOf(HasSubstr(name + " is no variable"), HasSubstr("unset it")));
  }
}

TEST(CheckNames, WhatIsProtectedAnywayIsNotRefused) {
  EXPECT_TRUE(check({"LEEWAY_SECRET=00", "LEEWAY_SECRET_FILE=/etc/key"}).ok());
  EXPECT_TRUE(check({"LEEWAY_REQUIRE_SEALD=1", "LEEWAY_TLS_CERT=/etc/cert"}).ok());
  EXPECT_FALSE(check({"LEEWAY_SECRET=00", "LEEWAY_SECRET_FILE="}).ok());
}

TEST(CheckNames, OtherOddVariablesAreSaidAndNotRefused) {
  EXPECT_TRUE(check({"LEEWAY_TRANSPRT=udp", "LEEWAY_HOME=/root", "LEEWAY_INSECUR=1"}).ok());
  const auto odd = odd_among({"LEEWAY_TRANSPRT=udp"});
  ASSERT_EQ(odd.size(), 1u);
  EXPECT_EQ(odd[0].text(),
            "LEEWAY_TRANSPRT is no variable of Leeway, and nobody reads it; is LEEWAY_TRANSPORT "
            "meant?");
}

}  // namespace
}  // namespace leeway::rendezvous
