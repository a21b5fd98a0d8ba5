#include "transport/ucx/report.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "transport/ucx/library.h"

namespace leeway::transport {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(UcxReport, ResourcesAreTakenFromTheContextsText) {
  EXPECT_THAT(
      internal::resources_in("# UCP context\n"
                             "#            md 4  :  component 6  cma \n"
                             "#\n"
                             "#      resource 0  :  md 0  dev 0  flags -- self/memory0\n"
                             "#      resource 11 :  md 3  dev 3  flags s- rc_mlx5/mlx5_0:1\n"),
      ElementsAre("self/memory0", "rc_mlx5/mlx5_0:1"));
}

TEST(UcxReport, LanesAreThoseOfActiveMessages) {
  EXPECT_THAT(
      internal::lanes_in(
          "#                 lane[0]:  2:posix/memory.0 md[1]          -> md[1]/posix/sysdev[255] "
          "am am_bw#0\n"
          "#                 lane[1]:  1:tcp/lo.0 md[0]                -> md[0]/tcp/sysdev[255] "
          "rma_bw#0\n"
          "#                 lane[2]:  7:rc_mlx5/mlx5_0:1.0 md[5]      -> md[5]/ib/sysdev[1] am "
          "am_bw#1 wireup\n"
          "#                 am_send: 0..<egr/short>..93..<egr/bcopy>..8256..<rndv>..(inf)\n"),
      ElementsAre("posix/memory", "rc_mlx5/mlx5_0:1"));
}

TEST(UcxReport, OtherTextNamesNothing) {
  for (const char* text :
       {"", "\n\n", "lane[0]:", "# lane[0]: am", "# lane[0]: x am", "resource", "# resource x"}) {
    EXPECT_THAT(internal::resources_in(text), IsEmpty()) << text;
  }
  EXPECT_THAT(internal::lanes_in("# lane[0]: am\n#"), IsEmpty());
}

TEST(UcxDevices, ListsWhatTheEnvironmentAllows) {
  setenv("UCX_TLS", "self,posix", 1);
  const auto resources = list_ucx_transports();
  ASSERT_TRUE(resources.ok());
  ASSERT_EQ(resources->size(), 2u);
  EXPECT_EQ((*resources)[1].transport, "posix");
  EXPECT_EQ((*resources)[1].device, "memory");
}

TEST(UcxDevices, SayWhatIsWrongWhereNothingCanBeUsed) {
  setenv("UCX_TLS", "no_such_transport", 1);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto resources = list_ucx_transports();
  const std::string printed =
      testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  EXPECT_EQ(resources.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(resources.status().c_str(), HasSubstr("no usable transports")) << "UCX's own words";
  EXPECT_EQ(printed, "") << "are in the status and nowhere else";
}

// The program may have signal handlers of its own, for instance a sanitizer's. UCX must not replace
// them.
TEST(UcxLibrary, LeavesTheProgramsSignalHandlersAlone) {
  for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    Dl_info where{};
    const bool known = dladdr(reinterpret_cast<void*>(action.sa_handler), &where) != 0;
    EXPECT_THAT(known ? where.dli_fname : "", Not(HasSubstr("libucs"))) << signal;
  }
}

TEST(UcxLibrary, SettingsOfTheEnvironmentWin) {
  constexpr UcxSetting kBad[] = {{"RCACHE_ENABLE", "nonsense"}};
  EXPECT_FALSE(read_ucx_config(kBad).ok());
  for (const char* name : {"UCX_RCACHE_ENABLE", "UCX_SOME_DEVICE_RCACHE_ENABLE"}) {
    setenv(name, "n", 1);
    const auto config = read_ucx_config(kBad);
    ASSERT_TRUE(config.ok()) << "what the environment names was touched: " << name;
    ucp_config_release(*config);
    unsetenv(name);
  }
}

}  // namespace
}  // namespace leeway::transport
