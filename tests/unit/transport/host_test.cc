#include "transport/shm/host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace leeway::transport {
namespace {

Result<Host> host_of(const std::string& text) {
  const auto path =
      std::filesystem::temp_directory_path() / ("leeway-boot-id-" + std::to_string(::getpid()));
  std::ofstream(path) << text;
  auto host = this_host(path.c_str());
  std::filesystem::remove(path);
  return host;
}

TEST(Host, IsTheKernelAndTheUser) {
  const auto host = host_of("0123ab45-6789-4cde-8f01-23456789abcd\n");
  ASSERT_TRUE(host.ok()) << host.status().c_str();
  EXPECT_EQ(host->boot[0], std::byte{0x01});
  EXPECT_EQ(host->boot[2], std::byte{0xAB});
  EXPECT_EQ(host->boot[15], std::byte{0xCD});
  EXPECT_EQ(host->user, ::geteuid());
}

TEST(Host, ThatDoesNotSayWhichKernelRunsIsNone) {
  for (const char* text : {"", "0123ab45", "no kernel here"})
    EXPECT_FALSE(host_of(text).ok()) << text;
  EXPECT_EQ(this_host("/there-is-no-such-file").status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace leeway::transport
