#include "interop/nccl/listeners.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "rendezvous/address.h"
#include "support/secret_line.h"

namespace leeway::nccl {
namespace {

using namespace std::chrono_literals;

// NCCL_COMM_ID names a place that anyone may know, so only a secret file keeps strangers out.
TEST(NcclListeners, APlaceWithoutASecretOfItsOwnTakesTheSecretFile) {
  const std::string file = testing::TempDir() + "nccl_secret_" + std::to_string(::getpid());
  std::ofstream(file) << secret_digits('a') << '\n';
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  Options options;
  options.secret_file = file;
  UniqueId id;
  id.nonce[0] = 1;
  id.addresses = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1}};
  {
    const auto free = TcpRendezvous::serve("127.0.0.1:0");
    ASSERT_TRUE(free.ok()) << free.status().c_str();
    id.port = rendezvous::parse_host_port((*free)->address())->port;
  }
  static Listeners listeners;  // never destroyed, because the process never ends it
  const auto place = listeners.reach(id, options, true);
  ASSERT_TRUE(place.ok()) << place.status().c_str();
  ASSERT_TRUE((*place)->put("key", std::as_bytes(std::span("value"))).ok());
  const auto member = listeners.reach(id, options, false);
  ASSERT_TRUE(member.ok()) << member.status().c_str();
  EXPECT_TRUE((*member)->get("key", 5s).ok());
  const auto stranger = TcpRendezvous::connect(id.places().front(), {});
  ASSERT_TRUE(stranger.ok());
  EXPECT_FALSE((*stranger)->get("key", 300ms).ok()) << "a stranger read the group's table";
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace leeway::nccl
