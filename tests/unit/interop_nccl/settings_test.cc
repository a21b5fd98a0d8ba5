#include "interop/nccl/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace leeway::nccl {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Result<Settings> read(const Variables& variables) {
  return Settings::read([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(NcclSettings, DefaultsAreNccls) {
  const auto settings = read({});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->version, 22809);
  EXPECT_EQ(settings->timeout, no_deadline);
  EXPECT_TRUE(settings->seal);
  EXPECT_FALSE(settings->check_pointers);
  EXPECT_FALSE(settings->blocking.has_value());
}

TEST(NcclSettings, AVariableThatIsSetAndEmptyIsRefused) {
  EXPECT_THAT(read({{"LEEWAY_NCCL_POLICY", ""}}).status().c_str(),
              HasSubstr("LEEWAY_NCCL_POLICY is set and empty"));
  EXPECT_TRUE(read({{"NCCL_SOCKET_IFNAME", ""}, {"NCCL_COMM_BLOCKING", ""}}).ok());
}

TEST(NcclSettings, VersionIsThreeNumbersOrTheirCode) {
  EXPECT_EQ(read({{"LEEWAY_NCCL_VERSION", "2.30.7"}})->version, 23007);
  EXPECT_EQ(read({{"LEEWAY_NCCL_VERSION", "2.27"}})->version, 22700);
  EXPECT_EQ(read({{"LEEWAY_NCCL_VERSION", "22606"}})->version, 22606);
  for (const char* wrong : {"3.0.0", "2", "two", "2.28.9.1", "2.-1"})
    EXPECT_FALSE(read({{"LEEWAY_NCCL_VERSION", wrong}}).ok()) << wrong;
}

TEST(NcclSettings, TimeoutIsSeconds) {
  EXPECT_EQ(read({{"LEEWAY_NCCL_TIMEOUT", "0.5"}})->timeout, 500ms);
  for (const char* wrong : {"0", "-1", "soon", "1e300", "nan"})
    EXPECT_THAT(read({{"LEEWAY_NCCL_TIMEOUT", wrong}}).status().c_str(),
                HasSubstr("LEEWAY_NCCL_TIMEOUT"));
}

TEST(NcclSettings, NcclsVariablesKeepTheirMeaning) {
  const auto settings = read({{"NCCL_SOCKET_FAMILY", "AF_INET6"},
                              {"NCCL_SOCKET_IFNAME", "^docker"},
                              {"NCCL_COMM_BLOCKING", "0"},
                              {"NCCL_COMM_ID", "host:1"},
                              {"NCCL_CHECK_POINTERS", "1"}});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->family, Settings::Family::v6);
  EXPECT_EQ(settings->interfaces, "^docker");
  EXPECT_EQ(settings->blocking, false);
  EXPECT_EQ(settings->meeting_place, "host:1");
  EXPECT_TRUE(settings->check_pointers);
}

TEST(NcclSettings, WrongOnesAreQuoted) {
  EXPECT_THAT(read({{"NCCL_SOCKET_FAMILY", "IPv4"}}).status().c_str(), HasSubstr("IPv4"));
  EXPECT_THAT(read({{"NCCL_COMM_BLOCKING", "yes"}}).status().c_str(), HasSubstr("yes"));
  EXPECT_EQ(read({{"LEEWAY_NCCL_STAGING", "64"}})->staging_mib, 64U);
  for (const char* const wrong : {"0", "-1", "5000", "32MiB"})
    EXPECT_THAT(read({{"LEEWAY_NCCL_STAGING", wrong}}).status().c_str(), HasSubstr("MiB"));
  EXPECT_EQ(read({{"LEEWAY_NCCL_SMS", "1024"}})->multiprocessors, 1024U);
  for (const char* const wrong : {"0", "-1", "1025", "all"})
    EXPECT_THAT(read({{"LEEWAY_NCCL_SMS", wrong}}).status().c_str(), HasSubstr("SMS"));
  EXPECT_THAT(read({{"LEEWAY_NCCL_SEAL", "2"}}).status().c_str(), HasSubstr("0 or 1"));
}

TEST(NcclSettings, OtherVariablesAreNamedOnce) {
  const char* const environment[] = {
      "PATH=/bin", "NCCL_PROTO=LL",    "NCCL_ALGO=Ring", "NCCL_DEBUG=INFO",
      "NCCLX=1",   "NCCL_COMM_ID=h:1", nullptr};
  EXPECT_THAT(ignored_variables(environment), ElementsAre("NCCL_ALGO", "NCCL_PROTO"));
}

}  // namespace
}  // namespace leeway::nccl
